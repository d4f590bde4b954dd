package openai

import (
	"fmt"
	"strings"
	"testing"

	"parley/llm"
)

// noted notes the steps that it is asked to write.
type noted struct {
	CompletionWriter
	steps []Delta
}

func (n *noted) Add(b []byte, d Delta) []byte         { n.steps = append(n.steps, d); return b }
func (n *noted) End(b []byte, _ *llm.Response) []byte { return b }

// TestManyCallsInTurns: calls that never end, with a step of each in turn, are written one after the other, and nothing of them is lost.
func TestManyCallsInTurns(t *testing.T) {
	t.Parallel()
	const calls, steps = 300, 40
	n := &noted{}
	w := InSequence(n)
	for step := range steps {
		for call := range calls {
			w.Add(nil, Delta{Call: call, Arguments: fmt.Sprintf("[%d", step)})
		}
		w.Add(nil, Delta{Text: "so"})
	}
	w.End(nil, &llm.Response{})
	var text strings.Builder
	said := 0
	for i, d := range n.steps {
		if !d.IsCall() {
			said++
			continue
		}
		if i > 0 && n.steps[i-1].IsCall() && n.steps[i-1].Call != d.Call {
			text.WriteByte(' ')
		}
		if text.WriteString(d.Arguments); d.Arguments == "[0" && i > 0 && n.steps[i-1].Call == d.Call && n.steps[i-1].IsCall() {
			t.Fatal("a call begins twice")
		}
	}
	if got := strings.Count(text.String(), "["); got != calls*steps || said != steps || len(n.steps) != calls*steps+steps {
		t.Errorf("%d steps of calls and %d of text", got, said)
	}
	for call := range calls {
		first := -1
		for i, d := range n.steps {
			if d.IsCall() && d.Call == call {
				if first < 0 {
					first = i
				} else if i-first >= steps {
					t.Fatalf("call %d is written in pieces", call)
				}
			}
		}
	}
}
