package cli

import (
	"context"
	"encoding/json"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/run/control"
	"parley/internal/run/engine"
	"parley/internal/run/runfile"
	"parley/internal/run/seat"
	"parley/journal"
	"parley/llm"
	"parley/world"
)

const (
	attack = "\x1b[2J\x1b]0;title\x07\u202e<b>"
	fields = `{"type":"object","properties":{"vote":{"enum":["draw","continue"]},"orders":{"type":"array","items":{"type":"string"}},"count":{"type":"integer","minimum":1},
		"messages":{"type":"array","items":{"type":"object","properties":{"to":{"enum":["ITALY","ALL"]},"text":{"type":"string"}},"required":["to","text"]}},"words":{"type":"array","items":{"type":"string"}}},"required":["vote","orders","count"]}`
)

// TestTalk: a person in a terminal fills in a form, chooses by number, corrects what was refused, and sees no control
// character of anybody.
func TestTalk(t *testing.T) {
	t.Parallel()
	run := filepath.Join(t.TempDir(), "run.parley")
	synctest.Test(t, func(t *testing.T) {
		store, err := runfile.Open(t.Context(), run, runfile.Create)
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		spec := world.Spec{Kind: "duel", Lineup: map[string]string{"FRANCE": "me"}}
		if err := store.Append(t.Context(), &journal.Begun{Version: journal.Version, Run: "r", Kind: "duel", KindVersion: 1, Agents: []world.Agent{{Name: "me", Model: world.Human}}}, &journal.Opened{},
			&journal.Staged{Specs: world.Repeat(spec, 1)}, &journal.Turned{Calls: 1},
			&journal.Replied{Seat: "FRANCE", Agent: "me", Label: "first", Request: &llm.Request{Model: "sim/x", Messages: []llm.Message{llm.User("old " + attack)}}, Response: &llm.Response{Text: "was said" + attack}}); err != nil {
			t.Fatal(err)
		}
		open := seat.New(run)
		end, err := control.Serve(t.Context(), run, map[string]control.Handler{seat.Verb: open.Handle})
		if err != nil {
			t.Fatal(err)
		}
		defer end()
		ask := func(turn int, schema string, offer *world.Offer) <-chan *llm.Response {
			q := engine.Question{Turn: journal.Turn{Turn: turn}, Seat: "FRANCE", Agent: "me", Label: "orders", Offer: offer, Deadline: time.Hour, Request: &llm.Request{Messages: []llm.Message{llm.User("new " + attack)}}}
			if schema != "" {
				q.Request.Schema = &llm.Schema{JSON: json.RawMessage(schema)}
			}
			got := make(chan *llm.Response, 1)
			go func() {
				resp, _ := open.Ask(context.WithoutCancel(t.Context()), q)
				got <- resp
			}()
			synctest.Wait() // questions are open in the order in which they are asked
			return got
		}
		orders := &world.Offer{Field: "orders", Choices: []world.Choice{{Name: "Paris" + attack, Options: []string{"A PAR H", "A PAR - BUR"}}, {Name: "Brest", Options: []string{"F BRE H"}}}}
		first, second, third := ask(1, fields, orders), ask(2, "", nil), ask(3, `{"type":"array","items":{"type":"number"}}`, nil)
		in, typed := io.Pipe()
		var out strings.Builder
		done := make(chan error, 1)
		go func() {
			done <- (&seatPlayer{File: run, Name: "FRANCE", Store: store, In: in, Out: &out}).Run(context.WithoutCancel(t.Context()))
		}()
		fill := "2\nA PAR H\n"
		for _, text := range []string{
			"war\n\n\n0\n\n\n", // no such vote
			fill + "\n0\n\n\n", // refused by the schema
			"draw\n2\n\n3\n2\nhello\n1\nciao\n\none\ntwo\n\n", // right
			"a line\nand another\n\n",                         // text
			"\n{\n\n", "[1, 2,\n3]\n\n",                       // JSON, cut off and whole
		} {
			_, _ = io.WriteString(typed, text)
			time.Sleep(time.Second)
		}
		want := `{"vote":"draw","orders":["A PAR - BUR"],"count":3,"messages":[{"to":"ALL","text":"hello"},{"to":"ITALY","text":"ciao"}],"words":["one","two"]}`
		if r := <-first; string(r.JSON) != want {
			t.Errorf("%s", r.JSON)
		}
		if r := <-second; r.Text != "a line\nand another" {
			t.Errorf("%q", r.Text)
		}
		if r := <-third; string(r.JSON) != "[1, 2,\n3]" {
			t.Errorf("%s", r.JSON)
		}
		if err := store.Append(t.Context(), &journal.Closed{State: journal.Complete}); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		_ = in.Close()
		for _, text := range []string{"[sim/x, for you]", "was said", "Not accepted: choose one of draw, continue", "Not accepted: count: expected at least 1", "answer within 1h0m0s", "2 A PAR - BUR", "has no end", "The run is complete."} {
			if !strings.Contains(out.String(), text) {
				t.Errorf("it does not say %q", text)
			}
		}
		if strings.ContainsAny(out.String(), "\x1b\x07\u202e") {
			t.Errorf("control characters: %q", out.String())
		}
		if t.Failed() {
			t.Log(out.String())
		}
	})
}

// TestLongLine: a line that is too long is an error, not the end.
func TestLongLine(t *testing.T) {
	t.Parallel()
	s := &seatPlayer{lines: make(chan string)}
	s.read(t.Context(), strings.NewReader(strings.Repeat("x", maxLine+1)))
	if _, err := s.line(t.Context()); err == nil || !strings.Contains(err.Error(), "longer than") {
		t.Error(err)
	}
}
