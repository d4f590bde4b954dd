package report

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"parley/internal/run/results"
	"parley/internal/serve/gateway"
	"parley/journal"
	"parley/llm"
	"parley/world"
)

// TestSessions checks that a report lists the sessions of a gateway's record, and does not say that the kind is
// unknown.
func TestSessions(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	j := &journal.Memory{}
	entries := []journal.Entry{
		&journal.Begun{Version: 1, Run: "r", Kind: "gateway", KindVersion: 1, At: at, Plan: json.RawMessage(`{}`), Agents: []world.Agent{{Name: "client"}}},
		&journal.Opened{At: at},
	}
	for i, name := range []string{"one", hostile, "three", "four"} {
		turn := journal.Turn{Episode: i}
		entries = append(entries,
			&journal.Staged{Stage: i, First: i, Specs: world.List(world.Spec{Kind: "gateway", Cell: name, Lineup: map[string]string{"client": "client"}})},
			&journal.Turned{Turn: turn, Calls: 1},
			&journal.Replied{
				Turn: turn, Seat: "client", Agent: "client", Label: "chat", At: at,
				Request:  &llm.Request{Model: "lab/a", Messages: []llm.Message{llm.User(strings.Repeat("why ", maxAsked))}},
				Response: &llm.Response{Text: "so", Usage: llm.Usage{Input: 10, Output: 5}},
			})
	}
	entries = append(entries,
		&journal.Ended{Episode: 0, At: at, Outcome: world.Outcome{Data: json.RawMessage(`{"reason":"solved","mode":"complete","truncated":true}`)}},
		&journal.Ended{Episode: 1, At: at, Outcome: world.Outcome{Failed: "aborted: enough", Data: json.RawMessage(`{"reason":"enough","mode":"abort"}`)}},
		&journal.Ended{Episode: 2, At: at, Outcome: world.Outcome{Failed: "lost"}})
	if err := j.Append(t.Context(), entries...); err != nil {
		t.Fatal(err)
	}
	run, err := results.Fold(t.Context(), j, "run.parley")
	if err != nil {
		t.Fatal(err)
	}
	run.Know(gateway.Kind())
	d, tables := built(t, Options{Episodes: 10, Transcripts: 1}, Source{Run: run, Journal: j})
	var got []string
	for _, row := range tables["sessions"].Rows {
		got = append(got, row[2].Text+" "+row[3].Text+" "+row[4].Text+" "+row[6].Text)
	}
	want := "closed 1 15 complete: solved (it had reached its step limit)|closed 1 15 abort: enough|closed 1 15 lost|open 1 15 "
	if s := strings.Join(got, "|"); s != want {
		t.Errorf("%s, want %s", s, want)
	}
	if text := html(t, d); strings.Contains(text, "does not know version") || strings.Count(text, "why why") == 0 || strings.Contains(text, strings.Repeat("why ", maxAsked/4+1)) {
		t.Error("the page says that the kind is unknown, or the request is missing or too long")
	}
	if _, tables = built(t, Options{Episodes: 2}, Source{Run: run, Journal: j}); len(tables["sessions"].Rows) != 2 {
		t.Errorf("%d sessions, want the first 2", len(tables["sessions"].Rows))
	}
}
