package cli

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"parley/internal/cli/terminal"
	"parley/internal/run/engine"
	"parley/journal"
	"parley/llm"
	"parley/world"
)

// TestInsideEpisodes: while few episodes play, the progress says where each is, in its world's own words. With Verbose,
// each that ends has a line.
func TestInsideEpisodes(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	v := &runView{Out: terminal.NewStream(&out, func(string) (string, bool) { return "", false }, func(any) int { return 0 }), Verbose: true, playing: map[int]*moment{}, failed: map[llm.Kind]int{}}
	note := func(episode int, data string) {
		v.See(engine.Event{Noted: &journal.Turned{Turn: journal.Turn{Episode: episode}, Notes: []world.Note{{Kind: "board", Data: json.RawMessage(data)}}}})
	}
	reply := func(episode, turn int, label string) {
		v.See(engine.Event{Replied: &journal.Replied{Turn: journal.Turn{Episode: episode, Turn: turn}, Label: label, Response: &llm.Response{Metadata: llm.Metadata{Cost: llm.Dollar}}}})
	}
	reply(0, 4, "message")
	note(1, `{"phase":"S1902M","turn":{"x":1}}`)
	reply(1, 2, "orders\x1b[2J")
	for _, bad := range []string{`[]`, `{`, `{"phase":{}}`, `{"phase":"` + strings.Repeat("x", 100) + `"}`, `null`} {
		note(1, bad)
	}
	if got := v.inside(); len(got) != 2 || got[0] != "episode 0: turn 5, message" || !strings.HasPrefix(got[1], "episode 1: phase S1902M, orders") || strings.Contains(got[1], "\x1b") {
		t.Errorf("%q", got)
	}
	for n := range 5 {
		reply(10+n, 0, "message")
	}
	if got := v.inside(); got != nil {
		t.Errorf("many play: %q", got)
	}
	v.See(engine.Event{Ended: &journal.Ended{Episode: 0, Outcome: world.Outcome{Scores: []world.Score{{Seat: "first", Name: "points", Value: 3}}}}})
	v.See(engine.Event{Ended: &journal.Ended{Episode: 1, Outcome: world.Outcome{Failed: "the model\nrefused\x1b"}}})
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 2 || !strings.HasPrefix(lines[0], "✓ done: episode 0: first points 3; $1.00, ") || !strings.HasPrefix(lines[1], "✗ failed: episode 1: the model refused") || strings.ContainsRune(out.String(), '\x1b') {
		t.Errorf("%q", lines)
	}
	if r := v.Monitor(); r.Episodes["ended"] != 1 || r.Episodes["failed"] != 1 || r.Episodes["playing"] != 5 || slices.Max([]int{r.Episodes["waiting"], 0}) != 0 {
		t.Errorf("%+v", r)
	}
}
