package results

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"parley/internal/run/runfile"
	"parley/journal"
	"parley/llm"
	"parley/world"
)

// record returns a run file of n episodes of which every seventh fails and every fifth is still played. add
// appends an episode.
func record(t *testing.T, n int) (store *runfile.Store, add func(episode int)) {
	t.Helper()
	store, err := runfile.Open(t.Context(), filepath.Join(t.TempDir(), "run.parley"), runfile.Create)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	write := func(entries ...journal.Entry) {
		t.Helper()
		if err := store.Append(t.Context(), entries...); err != nil {
			t.Fatal(err)
		}
	}
	even := world.Spec{Kind: "duel", Cell: "even", Lineup: map[string]string{"first": "small", "second": "large"}}
	odd := world.Spec{Kind: "duel", Cell: "odd", Lineup: map[string]string{"first": "large", "second": "smaller"}}
	write(&journal.Begun{Version: journal.Version, Run: "r1", Kind: "duel", KindVersion: 1}, &journal.Opened{},
		&journal.Staged{Specs: world.List(even, odd)}, &journal.Staged{Stage: 1, First: 2, Specs: world.Repeat(even, max(n, 50))})
	add = func(i int) {
		at := time.Unix(1_000_000, int64(i))
		turn := journal.Turn{Episode: i}
		write(&journal.Turned{Turn: turn, Calls: 2, Notes: []world.Note{{Kind: "secret", Seat: "first", Data: []byte(fmt.Sprintf(`"note%d"`, i))}}})
		for k := range 2 {
			r := &journal.Replied{
				Turn: turn, Index: k, Seat: "first", Agent: "small", Label: "say", At: at.Add(time.Duration((i*31)%17) * time.Second * time.Duration(k)),
				Request:  &llm.Request{Model: "sim/small", Messages: []llm.Message{llm.User("old question"), {Role: llm.RoleAssistant, Parts: []llm.Part{{Text: "old"}}}, llm.User(fmt.Sprintf("question%d", i))}},
				Response: &llm.Response{Text: fmt.Sprintf("answer%d café <b>", i), Usage: llm.Usage{Input: i % 13, Output: 1}, Metadata: llm.Metadata{Cost: llm.Money(i * 7 % 11)}},
			}
			if k == 1 && i%7 == 0 {
				r.Response, r.Error = nil, &llm.Error{Kind: llm.KindServer, Message: "down"}
			}
			write(r)
		}
		switch {
		case i%7 == 0:
			write(&journal.Ended{Episode: i, At: at.Add(time.Minute), Outcome: world.Outcome{Failed: "server down"}})
		case i%5 != 0:
			write(&journal.Ended{Episode: i, At: at.Add(time.Minute), Outcome: world.Outcome{Scores: []world.Score{
				{Seat: "second", Name: "points", Value: float64(i%4) / 3}, {Name: "won", Value: math.NaN()}, {Name: "both", Value: -float64(i)},
			}}})
		}
	}
	for i := range n {
		add(i)
	}
	return store, add
}

func update(t *testing.T, x *Index) {
	t.Helper()
	if _, err := x.Update(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, store *runfile.Store, run string) *Index {
	t.Helper()
	x, err := Open(t.Context(), store, run)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = x.Close() })
	return x
}

func numbers(rows []Row) (out []int) {
	for _, r := range rows {
		out = append(out, r.Episode)
	}
	return out
}

// TestByScore sorts by scores that are equal, missing, or not numbers.
func TestByScore(t *testing.T) {
	t.Parallel()
	store, _ := record(t, 40)
	x := open(t, store, "r1")
	update(t, x)
	names, err := x.Scores()
	if err != nil || fmt.Sprint(names) != "[{points second 0} {both  2}]" {
		t.Errorf("%v %v", names, err)
	}
	got := pages(t, x, Query{Sort: "score", Score: "points", Seat: "second", Desc: true, Limit: 3})
	want := 0
	for i := range 40 {
		if i%7 != 0 && i%5 != 0 {
			want++
		}
	}
	if len(got) != want {
		t.Errorf("%d episodes, want %d", len(got), want)
	}
	if !slices.IsSortedFunc(got, func(a, b Row) int {
		return cmp.Or(-cmp.Compare(a.Scores[0].Value, b.Scores[0].Value), -cmp.Compare(a.Episode, b.Episode))
	}) {
		t.Error(numbers(got))
	}
}

func TestFilters(t *testing.T) {
	t.Parallel()
	store, _ := record(t, 40)
	x := open(t, store, "r1")
	update(t, x)
	for _, c := range []struct {
		name string
		q    Query
		want string
	}{
		{"failed", Query{State: runfile.Failed}, "[0 7 14 21 28 35]"},
		{"playing", Query{State: runfile.Playing}, "[5 10 15 20 25 30]"},
		{"cell", Query{Cell: "dd"}, "[1]"},
		{"agent by its whole name", Query{Agent: "small", State: runfile.Failed}, "[0 7 14 21 28 35]"},
		{"agent that begins like another", Query{Agent: "smaller"}, "[1]"},
		{"reason", Query{Text: "r down", Desc: true}, "[35 28 21 14 7 0]"},
		{"hostile", Query{Cell: `' OR 1=1 --`}, "[]"},
	} {
		c.q.Limit = 100
		if got := fmt.Sprint(numbers(pages(t, x, c.q))); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// TestFollows checks that an index that follows a run equals one that is made at once, even if it was closed
// meanwhile.
func TestFollows(t *testing.T) {
	t.Parallel()
	store, add := record(t, 3)
	x := open(t, store, "r1")
	for i := 3; i < 30; i++ {
		add(i)
		update(t, x)
		if i == 20 {
			if err := x.Close(); err != nil {
				t.Fatal(err)
			}
			x = open(t, store, "r1")
		}
	}
	// An attempt that follows a failed one replaces its scores and state.
	turn := journal.Turn{Episode: 8, Attempt: 1}
	err := store.Append(t.Context(), &journal.Turned{Turn: turn, Calls: 2}, &journal.Replied{Turn: turn, Request: &llm.Request{Model: "lab/a"}, Response: &llm.Response{}},
		&journal.Replied{Turn: turn, Index: 1, Act: &world.Act{}, Response: &llm.Response{}},
		&journal.Ended{Episode: 8, Attempt: 1, At: time.Unix(2_000_000, 0), Outcome: world.Outcome{Scores: []world.Score{{Name: "both", Value: 1}}}})
	if err != nil {
		t.Fatal(err)
	}
	update(t, x)
	got := pages(t, x, Query{Limit: 100})
	if err := os.Remove(store.Path() + Suffix); err != nil {
		t.Fatal(err)
	}
	fresh := open(t, store, "r1")
	update(t, fresh)
	for i, want := range pages(t, fresh, Query{Limit: 100}) {
		if fmt.Sprint(got[i]) != fmt.Sprint(want) {
			t.Errorf("followed\n%v\nmade at once\n%v", got[i], want)
		}
	}
	if got[8].State != runfile.Ended || len(got[8].Scores) != 1 || got[8].Calls != 3 {
		t.Errorf("%+v", got[8])
	}
	if got[7].Errors != 1 || got[7].Calls != 2 || got[7].Took != time.Minute {
		t.Errorf("%+v", got[7])
	}
}

// TestSearch finds words in answers, notes and new messages, and takes operators of FTS5 as words.
func TestSearch(t *testing.T) {
	t.Parallel()
	store, add := record(t, 8)
	x := open(t, store, "r1")
	for {
		was := x.meta.texts
		n, err := x.UpdateTexts(t.Context(), 3)
		if err != nil {
			t.Fatal(err)
		}
		if n == was {
			break
		}
	}
	find := func(words string) (out []string) {
		t.Helper()
		for after := 0; ; {
			hits, err := x.Search(t.Context(), words, after, 3)
			if err != nil {
				t.Fatal(err)
			}
			for _, h := range hits {
				out = append(out, strconv.Itoa(h.Episode)+" "+h.What+" "+h.Call+" "+h.Seat)
				after = h.ID
			}
			if len(hits) < 3 {
				return out
			}
		}
	}
	for words, want := range map[string]string{
		"answer3":            "[3 answer 0:0 first 3 answer 0:1 first]",
		"ANSWER3 cafe":       "[3 answer 0:0 first 3 answer 0:1 first]",
		"answer3 cafx":       "[]",
		"answer7":            "[7 answer 0:0 first]",
		"note4":              "[4 note 0 first]",
		"question5":          "[5 asked 0:0 first 5 asked 0:1 first]",
		"old":                "[]", // it was in an earlier request
		`"`:                  "[]",
		"answer3 OR answer4": "[]",
		"text:answer3":       "[]",
		"  ":                 "[]",
		"answer3\x00\xff":    "[3 answer 0:0 first 3 answer 0:1 first]",
	} {
		if got := fmt.Sprint(find(words)); got != want {
			t.Errorf("%q: %s, want %s", words, got, want)
		}
	}
	if got := find("answ"); len(got) != 14 {
		t.Errorf("the beginning of a word: %v", got)
	}
	add(8)
	if _, err := x.UpdateTexts(t.Context(), 100); err != nil {
		t.Fatal(err)
	}
	if got := find("answer8"); len(got) != 2 {
		t.Errorf("what was added: %v", got)
	}
}

// TestLabels filters and sorts by labels, and replaces them.
func TestLabels(t *testing.T) {
	t.Parallel()
	store, _ := record(t, 20)
	x := open(t, store, "r1")
	update(t, x)
	for range 2 {
		if err := x.SetLabels(map[int]map[string]float64{3: {"any": 2, "verdict": 0.5}, 8: {"any": 1, "verdict": 1}, 9: {"any": 1}, 999: {"any": 1}}); err != nil {
			t.Fatal(err)
		}
	}
	for want, q := range map[string]Query{
		"[3 8 9]": {Label: "any", Limit: 2},
		"[3]":     {Label: "any", State: runfile.Ended, Cell: "even", Desc: true, Agent: "large", Limit: 1, Sort: "label", Score: "verdict", After: &IndexKey{Value: "1", Episode: 8}},
		"[8 3]":   {Sort: "label", Score: "verdict", Desc: true, Limit: 1},
		"[9 8 3]": {Label: "any", Sort: "episode", Desc: true, Limit: 5},
		"[]":      {Label: "none", Limit: 5},
	} {
		if got := fmt.Sprint(numbers(pages(t, x, q))); got != want {
			t.Errorf("%+v: %s, want %s", q, got, want)
		}
	}
	for _, row := range pages(t, x, Query{Limit: 100}) {
		same, err := x.SameDeal(t.Context(), row.Deal, row.Episode, 100)
		if err != nil || slices.ContainsFunc(same, func(r Row) bool { return r.Episode == row.Episode }) {
			t.Errorf("%d: %v %v", row.Episode, numbers(same), err)
		}
	}
}

// TestMakeIndexes checks that a column that was sorted by gets an index, and that pages stay the same.
func TestMakeIndexes(t *testing.T) {
	t.Parallel()
	store, _ := record(t, 30)
	for name, path := range map[string]string{"in a file": store.Path() + Suffix, "in memory": inMemory} {
		x := open(t, store, "r1")
		if path == inMemory {
			if err := errors.Join(x.Close(), x.open(t.Context(), inMemory, "r1")); err != nil {
				t.Fatal(err)
			}
		}
		update(t, x)
		before := pages(t, x, Query{Sort: "cost", Limit: 7})
		if err := x.MakeIndexes(t.Context()); err != nil {
			t.Fatal(err)
		}
		after := pages(t, x, Query{Sort: "cost", Limit: 7})
		tables, err := tablesOf(x.conn)
		if err != nil || tables["episodes_cost"] == "" || tables["episodes_took"] != "" || !slices.Equal(numbers(before), numbers(after)) || x.path != path {
			t.Errorf("%s: %v %v %v %v", name, tables, numbers(before), numbers(after), err)
		}
	}
}

// TestCancelled checks that a query ends with its context.
func TestCancelled(t *testing.T) {
	t.Parallel()
	store, _ := record(t, 5)
	x := open(t, store, "r1")
	update(t, x)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := x.Page(ctx, Query{Limit: 10}); err == nil {
		t.Error("a query runs without a reader")
	}
	if got := pages(t, x, Query{Limit: 10}); len(got) != 5 {
		t.Error("the next one does not")
	}
}

// TestClosed checks that late queries fail: a page may still be read when its run is closed.
func TestClosed(t *testing.T) {
	t.Parallel()
	store, _ := record(t, 5)
	x := open(t, store, "r1")
	update(t, x)
	if err := errors.Join(x.Close(), x.Close()); err != nil {
		t.Fatal(err)
	}
	_, updating := x.Update(t.Context())
	_, paging := x.Page(t.Context(), Query{Limit: 10})
	_, searching := x.Search(t.Context(), "hello", 0, 10)
	for i, err := range []error{updating, paging, searching} {
		if err == nil {
			t.Error("no error:", i)
		}
	}
}
