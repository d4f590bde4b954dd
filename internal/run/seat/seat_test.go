package seat

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/run/engine"
	"parley/internal/run/runfile/runfiletest"
	"parley/journal"
	"parley/llm"
	"parley/world"
)

const form = `{"type":"object","properties":{"orders":{"type":"array","items":{"type":"string"},"maxItems":2},"vote":{"enum":["draw","continue"]}},"required":["orders","vote"],"additionalProperties":false}`

// question returns question n to a seat.
func question(seat string, n int, schema string) engine.Question {
	q := engine.Question{Turn: world.TurnID{Episode: n, Strand: "4.2/", Turn: 3}, Seat: seat, Agent: "me", Label: "orders", Request: &llm.Request{Messages: []llm.Message{llm.System("rules"), llm.User("well?")}}}
	if schema != "" {
		q.Request.Schema = &llm.Schema{JSON: json.RawMessage(schema)}
	}
	return q
}

// reply is what Ask returned.
type reply struct {
	resp *llm.Response
	err  error
}

// ask asks in the background. The reply can be read when the goroutines of the test are blocked.
func ask(ctx context.Context, o *Open, q engine.Question) <-chan reply {
	c := make(chan reply, 1)
	go func() {
		resp, err := o.Ask(ctx, q)
		c <- reply{resp, err}
	}()
	return c
}

func newOpen(t *testing.T) (*Open, string) {
	t.Helper()
	run := filepath.Join(t.TempDir(), "run.parley")
	return New(run), run
}

// TestAnswer: wrong answers are refused with what is wrong, and the first right one is taken.
func TestAnswer(t *testing.T) {
	t.Parallel()
	o, run := newOpen(t)
	synctest.Test(t, func(t *testing.T) {
		got := ask(t.Context(), o, question("FRANCE", 7, form))
		text := ask(t.Context(), o, question("ITALY", 7, ""))
		synctest.Wait()
		open, err := Read(t.Context(), run)
		if err != nil || len(open) != 2 || open[0].Episode != 7 || len(open[0].Messages) != 2 || open[0].Messages[1].Text != "well?" {
			t.Fatalf("%+v, %v", open, err)
		}
		if info, err := os.Stat(run + Suffix); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
			t.Error("others can read the questions:", info.Mode(), err)
		}
		id := ID(world.TurnID{Episode: 7, Strand: "4.2/", Turn: 3}, 0)
		right := `{"orders":["<script>A PAR H</script>"],"vote":"draw"}`
		for _, c := range []struct{ question, seat, text, refused string }{
			{id, "FRANCE", "", "empty"},
			{id, "FRANCE", "{", "no end"},
			{id, "FRANCE", "no", "expected a JSON value"},
			{id, "FRANCE", `{"orders":["a","b","c"],"vote":"war"}`, `orders: expected at most 2 items`},
			{id, "FRANCE", `{"orders":["a","b","c"],"vote":"war"}`, `vote: expected one of "draw", "continue", found the string "war"`},
			{id, "FRANCE", `{"orders":[],"vote":"draw","x":1}`, "x"},
			{id, "FRANCE", `{"orders":["\u001b[2J"],"vote":"draw"}`, "control character U+001B"},
			{id, "FRANCE", "{\"orders\":[\"\x1b[2J\"],\"vote\":\"draw\"}", "control character U+001B"},
			{id, "FRANCE", "\xff" + right, "UTF-8"},
			{id, "FRANCE", strings.Repeat(" ", MaxAnswer) + right, "at most"},
			{id, "ENGLAND", right, "not open"},
			{id + "0", "FRANCE", right, "not open"},
			{"", "", "", "not open"},
			{id, "FRANCE", right, ""},
			{id, "FRANCE", right, "already has an answer"},
			{id, "ITALY", "\r\n a\r\nb\t<b>", ""},
		} {
			err := o.Answer(Answer{c.question, c.seat, c.text})
			if (err == nil) != (c.refused == "") || err != nil && !strings.Contains(err.Error(), c.refused) {
				t.Errorf("%.60q: %v, want %q", c.text, err, c.refused)
			}
		}
		synctest.Wait()
		if r := <-got; r.err != nil || string(r.resp.JSON) != right || r.resp.Text != right || r.resp.Metadata.Cost != 0 || r.resp.Model != world.Human {
			t.Errorf("%+v, %v", r.resp, r.err)
		}
		if r := <-text; r.err != nil || r.resp.JSON != nil || r.resp.Text != "\n a\nb\t<b>" {
			t.Errorf("%+v, %v", r.resp, r.err)
		}
	})
	if _, err := os.Stat(run + Suffix); !os.IsNotExist(err) {
		t.Error("the file is left:", err)
	}
	if open, err := Read(t.Context(), run); err != nil || len(open) != 0 {
		t.Error(open, err)
	}
}

// TestTwoPeople: of many people who answer one question at once, one is heard and the others learn that.
func TestTwoPeople(t *testing.T) {
	t.Parallel()
	o, _ := newOpen(t)
	synctest.Test(t, func(t *testing.T) {
		got := ask(t.Context(), o, question("FRANCE", 0, ""))
		synctest.Wait()
		id := ID(question("FRANCE", 0, "").Turn, 0)
		var wg sync.WaitGroup
		accepted := make(chan string, 20)
		for i := range 20 {
			wg.Go(func() {
				text := fmt.Sprint("answer ", i)
				if err := o.Answer(Answer{id, "FRANCE", text}); err == nil {
					accepted <- text
				} else if !strings.Contains(err.Error(), "already has an answer") {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		close(accepted)
		if r := <-got; len(accepted) != 1 || r.resp.Text != <-accepted {
			t.Errorf("%+v, %v", r.resp, r.err)
		}
	})
}

// TestDeadline: a question fails at its deadline, which counts from the moment at which people can see it.
func TestDeadline(t *testing.T) {
	t.Parallel()
	o, run := newOpen(t)
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var all []<-chan reply
		for i := range maxShown + 1 {
			q := question("FRANCE", i, "")
			q.Deadline = time.Minute
			all = append(all, ask(t.Context(), o, q))
			synctest.Wait()
		}
		other := ask(t.Context(), o, question("ITALY", 0, ""))
		synctest.Wait()
		if open, _ := Read(t.Context(), run); len(open) != maxShown+1 || open[0].Deadline.Sub(began) != time.Minute || o.Waiting() != `the people in seats "FRANCE", "ITALY" (parley sit)` {
			t.Errorf("%d questions are open, %+v; %s", len(open), open[0], o.Waiting())
		}
		for i, c := range all {
			r := <-c
			want := time.Minute
			if i == maxShown {
				want = 2 * time.Minute
			}
			if llm.KindOf(r.err) != llm.KindTimeout || time.Since(began) != want || !strings.Contains(r.err.Error(), "me did not answer within 1m0s") {
				t.Errorf("question %d: %v after %v", i, r.err, time.Since(began))
			}
		}
		if err := o.Answer(Answer{ID(question("FRANCE", 0, "").Turn, 0), "FRANCE", "late"}); err == nil || !strings.Contains(err.Error(), "not open any more") {
			t.Error(err)
		}
		o.Drain()
		o.Drain()
		if r := <-other; llm.KindOf(r.err) != llm.KindCanceled {
			t.Error("drained:", r.err)
		}
		if r := <-ask(t.Context(), o, question("ITALY", 1, "")); llm.KindOf(r.err) != llm.KindCanceled {
			t.Error("after the drain:", r.err)
		}
	})
}

// TestAbort: a question ends with its context.
func TestAbort(t *testing.T) {
	t.Parallel()
	o, run := newOpen(t)
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		got := ask(ctx, o, question("FRANCE", 0, ""))
		synctest.Wait()
		cancel()
		if r := <-got; llm.KindOf(r.err) != llm.KindCanceled {
			t.Error(r.err)
		}
		if open, err := Read(t.Context(), run); len(open) > 0 || err != nil {
			t.Error(open, err)
		}
	})
}

// TestNoFile: a run that cannot write its questions says so instead of waiting.
func TestNoFile(t *testing.T) {
	t.Parallel()
	o := New(filepath.Join(t.TempDir(), "none", "run.parley"))
	if _, err := o.Ask(t.Context(), question("FRANCE", 0, "")); llm.KindOf(err) != llm.KindBadRequest || !strings.Contains(err.Error(), "run.parley-seats") {
		t.Error(err)
	}
	if _, err := o.Ask(t.Context(), question("FRANCE", 0, `{"type":5}`)); llm.KindOf(err) != llm.KindBadRequest {
		t.Error("a schema that is not one:", err)
	}
}

// TestPlaces: seats of people are found in whichever episode they are.
func TestPlaces(t *testing.T) {
	t.Parallel()
	const late = 50_000
	specs := world.Repeat(world.Spec{Kind: "duel", Lineup: map[string]string{"a": "bot", "b": "bot"}}, late)
	for _, lineup := range []map[string]string{{"a": "me", "b": "bot"}, {"a": "bot", "b": "me"}, {"a": "me", "b": "you"}} {
		specs = world.Join(specs, world.Repeat(world.Spec{Kind: "duel", Lineup: lineup}, 2))
	}
	begun := &journal.Begun{Version: journal.Version, Kind: "duel", Agents: []world.Agent{{Name: "bot", Model: "sim/x"}, {Name: "me", Model: world.Human}, {Name: "you", Model: world.Human}}}
	store := runfiletest.Open(t, begun, &journal.Opened{}, &journal.Staged{Specs: specs}, &journal.Ended{Episode: late + 2})
	places, err := Places(t.Context(), store, begun)
	if got := fmt.Sprint(places); err != nil || got != "[{a me} {b me} {b you}]" {
		t.Errorf("%s, %v", got, err)
	}
	for seat, want := range map[string]int{"a": late + 1, "b": late + 2, "c": -1} {
		if got, err := LatestEpisode(t.Context(), store, begun, seat); err != nil || got != want {
			t.Errorf("seat %s: episode %d, want %d, %v", seat, got, want, err)
		}
	}
}
