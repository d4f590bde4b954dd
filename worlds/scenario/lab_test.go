package scenario

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"parley/internal/ask/sim/jsongen"
	"parley/internal/run/planfile"
	"parley/llm"
	"parley/world"
	"parley/worlds/scenario/script"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// asked is a call and when it was made: each call takes one tick.
type asked struct {
	world.Call
	at int
}

// played is an episode that was played to its end.
type played struct {
	calls   []asked
	notes   []world.Note
	outcome world.Outcome
	ticks   int // on the critical path
	failure string
}

// lab plays scripts with made-up answers.
type lab struct {
	answer func(c world.Call) world.Reply
	out    *played
}

// playScript plays a script with answers; a nil answer is a good one.
func playScript(s *script.Script, deal int, answer func(world.Call) world.Reply) *played {
	if answer == nil {
		answer = good
	}
	l := lab{answer: answer, out: &played{}}
	l.out.ticks = l.run(world.Begin(newGame(s), world.Deal{Seed: 7, Number: deal}), 0)
	return l.out
}

// run plays a strand from a moment on, and returns when it ends.
func (l *lab) run(s *world.Strand, now int) int {
	defer s.Stop() // an answer may end the test
	var replies []world.Reply
	for {
		turn := s.Next(replies)
		replies = nil
		l.out.notes = append(l.out.notes, turn.Notes...)
		switch {
		case turn.Panic != "":
			l.out.failure = turn.Panic + "\n" + turn.Stack
			return now
		case turn.Done:
			if s.Path == "" {
				l.out.outcome = turn.Outcome
			}
			return now
		case len(turn.Forks) > 0:
			end := now
			defer func() {
				for _, f := range turn.Forks {
					f.Stop()
				}
			}()
			for _, f := range turn.Forks {
				end = max(end, l.run(f, now))
			}
			now = end
		default:
			for _, c := range turn.Calls {
				l.out.calls = append(l.out.calls, asked{c, now})
				replies = append(replies, l.answer(c))
			}
			now++
		}
	}
}

// good answers a call by its schema, differently for each question.
func good(c world.Call) world.Reply {
	d := c.Ask.Digest()
	return follow(c, rand.New(rand.NewPCG(uint64(d[0])<<8|uint64(d[1]), uint64(d[2]))))
}

// compiled are schemas by their text: there are few, and compiling takes longest.
var compiled sync.Map

func follow(c world.Call, r *rand.Rand) world.Reply {
	s, ok := compiled.Load(string(c.Ask.Schema.JSON))
	if !ok {
		made, err := jsongen.Compile(c.Ask.Schema.JSON)
		if err != nil {
			panic(err)
		}
		s, _ = compiled.LoadOrStore(string(c.Ask.Schema.JSON), made)
	}
	return world.Reply{JSON: s.(*jsongen.Schema).Append(nil, r), Finish: llm.FinishStop}
}

// answers returns replies by label: the JSON of each, or a function of the call. A label
// is also found by its first word. Others are answered well.
func answers(by map[string]any) func(world.Call) world.Reply {
	return func(c world.Call) world.Reply {
		head, _, _ := strings.Cut(c.Label, " ")
		for _, label := range []string{c.Label + "@" + c.Seat, c.Label, head} {
			switch v := by[label].(type) {
			case string:
				return world.Reply{JSON: json.RawMessage(v), Finish: llm.FinishStop}
			case llm.Kind:
				return world.Reply{Failed: v}
			case func(world.Call) world.Reply:
				return v(c)
			}
		}
		return good(c)
	}
}

// of returns the notes of a kind, decoded.
func of[T any](t *testing.T, p *played, kind string) []T {
	t.Helper()
	var all []T
	for _, n := range p.notes {
		if n.Kind != kind {
			continue
		}
		var v T
		if err := json.Unmarshal(n.Data, &v); err != nil {
			t.Fatal(err)
		}
		all = append(all, v)
	}
	return all
}

// count counts calls by the first word of their label.
func (p *played) count(label string) int {
	n := 0
	for _, c := range p.calls {
		if head, _, _ := strings.Cut(c.Label, " "); head == label {
			n++
		}
	}
	return n
}

// stage makes a script of n actors and turns.
func stage(n, turns int, change func(*script.Script)) *script.Script {
	s := &script.Script{Name: "Test", State: "The situation at the start.", TurnDuration: "1 month", Turns: turns, Window: 3}
	for i := range n {
		s.Actors = append(s.Actors, script.Actor{ShortName: fmt.Sprintf("a%d", i), Name: fmt.Sprintf("Actor %d", i)})
	}
	if change != nil {
		change(s)
	}
	return s
}

// numeric is a metric from 0 to 10 that a model is asked for.
func numeric(name string) script.Metric {
	return script.Metric{Name: name, Description: "How much.", Type: script.Continuous, Range: []float64{0, 10}, Extraction: script.Extraction{Type: script.ByModel}}
}

// loaded reads a plan file and returns its script.
func loaded(t *testing.T, plan string) (*planfile.Plan, *script.Script) {
	t.Helper()
	p, err := planfile.Load(t.Context(), plan, []world.Kind{Kind()}, nil, planfile.Reach{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := p.Params.Pointer().(*Params).script()
	if err != nil {
		t.Fatal(err)
	}
	return p, s
}

// contains returns which calls hold a text.
func contains(calls []asked, text string) []int {
	var found []int
	for i, c := range calls {
		if slices.ContainsFunc(c.Ask.Messages, func(m llm.Message) bool { return strings.Contains(m.Text(), text) }) {
			found = append(found, i)
		}
	}
	return found
}
