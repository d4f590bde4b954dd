package score

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/internal/run/results"
	"parley/internal/run/runfile"
	"parley/journal"
	"parley/llm"
	"parley/world"
)

// write makes a run file of entries.
func write(t *testing.T, file string, entries ...journal.Entry) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	s, err := runfile.Open(t.Context(), file, runfile.Create)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Append(t.Context(), entries...); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// scorer makes the run of a scorer over episodes 1 and 2 of a run: the first is polite, the second could not be scored.
func scorer(t *testing.T, run string) []journal.Entry {
	t.Helper()
	what := results.NewScored(run, []int{1, 2}, []world.Measure{{Name: "polite", Bounds: world.Share()}})
	var specs []world.Spec
	for _, what.Episode = range []int{1, 2} {
		raw, err := json.Marshal(map[string]any{"scored": what})
		if err != nil {
			t.Fatal(err)
		}
		specs = append(specs, world.Spec{Kind: "polite.py:Politeness", Params: raw})
	}
	plan := fmt.Appendf(nil, `{"kind":"polite.py:Politeness","params":%s}`, specs[0].Params)
	return []journal.Entry{
		&journal.Begun{Version: journal.Version, Run: "s", Kind: "polite.py:Politeness", KindVersion: 1, Plan: plan},
		&journal.Staged{Specs: world.List(specs...)},
		&journal.Ended{Episode: 0, Outcome: world.Outcome{Scores: []world.Score{{Seat: "a", Name: "polite", Value: 1}}}},
		&journal.Ended{Episode: 1, Outcome: world.Outcome{Failed: "judge: timeout"}},
	}
}

// TestRead: the scores of scorers become scores of the run that they scored, and of no other.
func TestRead(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "run.parley")
	if set, err := Read(t.Context(), file, "r"); err != nil || len(set.By) > 0 {
		t.Fatalf("%+v, %v", set, err)
	}
	write(t, File(file, "Politeness"), scorer(t, "r")...)
	write(t, File(file, "Other"), scorer(t, "another")...)
	write(t, filepath.Join(Folder(file), "notes.txt"))
	if Origin(File(file, "Politeness")) != file {
		t.Errorf("origin %s", Origin(File(file, "Politeness")))
	}
	set, err := Read(t.Context(), file, "r")
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(set.By); got != "map[1:[{a Politeness.polite 1}]]" {
		t.Errorf("scores %s", got)
	}
	r := &results.Run{Bounds: map[string]world.Bounds{}}
	set.Attach(r)
	if r.Bounds["Politeness.polite"] != world.Share() {
		t.Errorf("bounds %v", r.Bounds)
	}
	both := &Set{By: map[int][]world.Score{}, Bounds: map[string]world.Bounds{}}
	both.Merge(r, func(n int) (int, bool) { return n + 10, true })
	if len(both.By[11]) != 1 || both.Bounds["Politeness.polite"] != world.Share() {
		t.Errorf("merged %+v", both)
	}
	if err := os.WriteFile(File(file, "Damaged"), []byte("no database"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(t.Context(), file, "r"); err == nil || !strings.Contains(err.Error(), "Damaged.parley") {
		t.Errorf("error %v", err)
	}
}

// TestNumbers: the numbers of episodes are written and read.
func TestNumbers(t *testing.T) {
	t.Parallel()
	for text, all := range map[string][]int{"0-2": {0, 1, 2}, "5": {5}, "0,2-3,9": {0, 2, 3, 9}} {
		s := results.NewScored("r", all, nil)
		got, err := s.Numbers()
		if s.Episodes != text || err != nil || fmt.Sprint(got) != fmt.Sprint(all) {
			t.Errorf("%v: %q, %v, %v", all, s.Episodes, got, err)
		}
	}
	for _, bad := range []string{"", "a", "3-1", "-1", "0-", "0-999999999999", "1,,2"} {
		if _, err := (results.Scored{Episodes: bad}).Numbers(); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}

// TestPlayed: a scorer gets what the last attempt said and did, in the order of the story.
func TestPlayed(t *testing.T) {
	t.Parallel()
	j := &journal.Memory{}
	spec := world.Spec{Kind: "game", Params: json.RawMessage(`{"n":1}`), Lineup: map[string]string{"a": "me"}, Deal: 3}
	reply := func(attempt int, text string) *journal.Replied {
		return &journal.Replied{
			Turn: journal.Turn{Attempt: attempt}, Seat: "a", Agent: "me", Label: "move",
			Request: &llm.Request{Messages: []llm.Message{llm.User("Your move?")}}, Response: &llm.Response{Text: text},
		}
	}
	err := j.Append(t.Context(),
		&journal.Begun{Version: journal.Version, Run: "r", Kind: "game", Agents: []world.Agent{{Name: "me", Model: "lab/one"}}},
		&journal.Staged{Specs: world.List(spec, spec)},
		reply(0, "lost"),
		&journal.Turned{Turn: journal.Turn{Attempt: 1}, Calls: 1, Notes: []world.Note{{Kind: "board", Data: json.RawMessage(`7`)}}},
		reply(1, "north"),
		&journal.Ended{Attempt: 1, Outcome: world.Outcome{Scores: []world.Score{{Name: "won", Seat: "b", Value: 1}, {Name: "length", Value: 7}}, Data: json.RawMessage(`{"x":1}`)}},
		&journal.Ended{Episode: 1, Outcome: world.Outcome{Failed: "no"}},
	)
	if err != nil {
		t.Fatal(err)
	}
	head, err := j.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(Ended(head)); got != "[0]" {
		t.Errorf("episodes %s", got)
	}
	of, err := Played(t.Context(), j, head, 0)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(of)
	want := `{"run":"r","episode":0,"kind":"game","params":{"n":1},"deal":3,"lineup":{"a":"me"},"models":{"me":"lab/one"},` +
		`"outcome":{"scores":[{"seat":"b","name":"won","value":1},{"name":"length","value":7}],"data":{"x":1}},"notes":[{"turn":"0","kind":"board","data":7}],` +
		`"calls":[{"turn":"0","seat":"a","agent":"me","label":"move","messages":[{"role":"user","content":"Your move?"}],"reply":{"text":"north"}}]}`
	if err != nil || string(raw) != want || fmt.Sprint(of.Seats()) != "[a b]" {
		t.Errorf("%s, %v, %v\nwant %s", raw, of.Seats(), err, want)
	}
}
