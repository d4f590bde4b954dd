package telemetry

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"parley/journal"
	"parley/llm"
	"parley/world"
)

// TestPlay checks that the spans of a run are one tree, run, episode, call, and have no text.
func TestPlay(t *testing.T) {
	t.Parallel()
	to := &collector{}
	tr := openTo(t, to, nil)
	p := tr.StartTrace("run", "study.parley")
	ask := &llm.Request{Model: "lab/small", Messages: []llm.Message{llm.User("a secret")}, MaxTokens: 9}
	at := journal.Turn{Episode: 3}
	p.Replied(&journal.Replied{Turn: at, Seat: "first", Agent: "bold", Label: "message", Request: ask, At: time.Now(), Response: &llm.Response{Text: "a secret", Metadata: llm.Metadata{Latency: time.Minute}}})
	p.Replied(&journal.Replied{Turn: at, Request: ask, At: time.Now(), Error: &llm.Error{Kind: llm.KindServer, Message: "a secret"}})
	p.Replied(&journal.Replied{Turn: at, Response: &llm.Response{Text: "of a bot"}})
	p.Ended(&journal.Ended{Episode: 3, At: time.Now(), Outcome: world.Outcome{Failed: "a secret", Scores: []world.Score{{Name: "both", Value: 1}}}})
	p.Asked(ask, llm.Result{Response: &llm.Response{}})
	p.End("stopped")
	if err := tr.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if all := fmt.Sprint(to.spans); strings.Contains(all, "secret") || len(to.spans) != 5 {
		t.Fatalf("%d spans: %s", len(to.spans), all)
	}
	call, failed, episode, question, run := to.spans[0], to.spans[1], to.spans[2], to.spans[3], to.spans[4]
	if call[4][0] != episode[2][0] || failed[4][0] != episode[2][0] || episode[4][0] != run[2][0] || question[4][0] != run[2][0] || run[4] != nil {
		t.Errorf("no tree: %v", to.spans)
	}
	for i, s := range to.spans {
		if s[1][0] != run[1][0] || s[5][0] != []string{"chat small", "chat small", "episode", "chat small", "run"}[i] || s[6][0] != []string{"3", "3", "1", "3", "1"}[i] {
			t.Errorf("span %d: %v", i, s)
		}
	}
	if episode[7][0] != call[7][0] || fields(failed[15][0])[3][0] != "2" || fields(episode[15][0])[3][0] != "2" {
		t.Error("the episode began after its first call, or failures are not seen")
	}
	var none *Exporter
	quiet := none.StartTrace("run", "")
	quiet.Replied(&journal.Replied{Request: ask})
	quiet.Ended(&journal.Ended{})
	quiet.Asked(ask, llm.Result{})
	quiet.End("")
}
