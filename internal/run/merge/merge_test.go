package merge

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"parley/journal"
	"parley/journal/journaltest"
	"parley/llm"
	"parley/world"
)

// said is an episode: its deal and what was said in it. Small letters may be chance, "" is an
// episode that did not end.
type said struct {
	deal int
	text string
}

// run records episodes of one cell.
func run(t *testing.T, id string, seed uint64, episodes ...said) Source {
	t.Helper()
	j := &journal.Memory{}
	entries := []journal.Entry{
		&journal.Begun{Run: id, Kind: "k", KindVersion: 1, Seed: seed, Agents: []world.Agent{{Name: "x", Model: "lab/x"}}, Plan: json.RawMessage(`{}`)},
		&journal.Opened{},
	}
	var specs []world.Spec
	for _, e := range episodes {
		specs = append(specs, world.Spec{Kind: "k", Params: json.RawMessage(`{"n":1}`), Lineup: map[string]string{"a": "x"}, Deal: e.deal})
	}
	entries = append(entries, &journal.Staged{Specs: world.List(specs...)})
	for n, e := range episodes {
		at := journal.Turn{Episode: n}
		entries = append(entries, &journal.Turned{Turn: at, Calls: 1}, &journal.Replied{Turn: at, Seat: "a", Agent: "x", Request: &llm.Request{Model: "lab/x"}, Response: &llm.Response{Text: e.text, Metadata: llm.Metadata{Cost: 7}}})
		if e.text != "" {
			end := &journal.Ended{Episode: n, Chance: e.text == strings.ToLower(e.text), Outcome: world.Outcome{Data: json.RawMessage(`"` + e.text + `"`)}}
			copy(end.Play[:], e.text)
			entries = append(entries, end)
		}
	}
	entries = append(entries, &journal.Closed{State: journal.Complete})
	if err := j.Append(t.Context(), entries...); err != nil {
		t.Fatal(err)
	}
	return Source{Name: id + ".parley", Journal: j}
}

// texts are the episodes of a journal, as "deal text", by way of its head and of its entries.
func texts(t *testing.T, j journal.Journal) (out []string) {
	t.Helper()
	head, err := j.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var replies []string
	_ = j.Read(t.Context(), journal.Whole(), func(e journal.Entry) error {
		if r, ok := e.(*journal.Replied); ok {
			replies = append(replies, fmt.Sprint(r.Episode, " ", r.Response.Text))
		}
		return nil
	})
	n, ends := 0, journaltest.Ends(t, j)
	for _, st := range head.Stages {
		for i, s := range st.Specs.All() {
			text := ""
			if e, ok := ends[st.First+i]; ok {
				text = strings.Trim(string(e.Outcome.Data.(json.RawMessage)), `"`)
			}
			entries, err := journal.Episode(t.Context(), j, n)
			if err != nil || len(entries) != 2 || entries[1].(*journal.Replied).Response.Text != text || st.First+i != n || replies[n] != fmt.Sprint(n, " ", text) {
				t.Errorf("episode %d: %q, %v, %v, %q", n, text, entries, err, replies[n])
			}
			out = append(out, fmt.Sprint(s.Deal, text))
			n++
		}
	}
	return out
}

func TestDuplicatesCountOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		runs   func(t *testing.T) []Source
		want   string
		shared string
	}{
		"nothing in common": {func(t *testing.T) []Source {
			return []Source{run(t, "a", 1, said{0, "A"}, said{1, "B"}), run(t, "b", 1, said{2, "A"})}
		}, "0A 1B 2A", "[]"},
		"the same said": {func(t *testing.T) []Source {
			return []Source{run(t, "a", 1, said{0, "A"}, said{1, "B"}), run(t, "b", 1, said{1, "B"}, said{0, "X"})}
		}, "0A 1B 0X", "[1 episode is in both a.parley and b.parley; it counts once]"},
		"by chance": {func(t *testing.T) []Source {
			return []Source{run(t, "a", 1, said{0, "yes"}, said{1, "no"}), run(t, "b", 1, said{0, "yes"}, said{1, "yes"})}
		}, "0yes 1no 0yes 1yes", "[]"},
		"all the same, little said": {func(t *testing.T) []Source {
			return []Source{run(t, "a", 1, said{0, "yes"}, said{1, "no"}), run(t, "b", 1, said{0, "yes"}, said{1, "no"}, said{2, "no"})}
		}, "0yes 1no 2no", "[2 episodes are in both a.parley and b.parley; they count once]"},
		"copies within a run stay": {func(t *testing.T) []Source {
			return []Source{run(t, "a", 1, said{0, "A"}, said{0, "A"}), run(t, "b", 1, said{0, "A"}, said{0, "A"}, said{0, "A"})}
		}, "0A 0A 0A", "[2 episodes are in both a.parley and b.parley; they count once]"},
		"a copy of the file, resumed": {func(t *testing.T) []Source {
			return []Source{run(t, "a", 1, said{0, "yes"}, said{1, ""}), run(t, "a", 1, said{0, "yes"}, said{1, "no"}, said{2, "no"})}
		}, "0yes 1no 2no", "[2 episodes are in both a.parley and a.parley; they count once]"},
		"other seeds": {func(t *testing.T) []Source {
			return []Source{run(t, "a", 1, said{0, "A"}, said{1, "A"}), run(t, "b", 2, said{0, "A"}), run(t, "c", 1, said{1, "X"})}
		}, "0A 1A 2A 1X", "[]"},
	} {
		runs, err := New(t.Context(), c.runs(t))
		if err != nil {
			t.Fatal(name, err)
		}
		if got := strings.Join(texts(t, runs), " "); got != c.want || fmt.Sprint(runs.Shared) != c.shared {
			t.Errorf("%s: %s, %v; want %s, %s", name, got, runs.Shared, c.want, c.shared)
		}
	}
}

// TestMeasures: the bounds of scores are those that hold in all runs.
func TestMeasures(t *testing.T) {
	t.Parallel()
	with := func(s Source, m ...world.Measure) Source {
		head, _ := s.Journal.Head(t.Context())
		head.Begun.Measures = m
		return s
	}
	a := with(run(t, "a", 1, said{0, "A"}), world.Measure{Name: "points", Bounds: world.Share()})
	b := with(run(t, "b", 2, said{0, "B"}), world.Measure{Name: "length"}, world.Measure{Name: "points", Bounds: world.Bounds{Low: -1, High: 0.5}})
	runs, err := New(t.Context(), []Source{a, b})
	if err != nil {
		t.Fatal(err)
	}
	head, err := runs.Head(t.Context())
	want := []world.Measure{{Name: "points", Bounds: world.Bounds{Low: -1, High: 1}}, {Name: "length"}}
	if err != nil || !reflect.DeepEqual(head.Begun.Measures, want) {
		t.Errorf("%+v, %v; want %+v", head.Begun.Measures, err, want)
	}
	if head, _ := a.Journal.Head(t.Context()); head.Begun.Measures[0].Bounds != world.Share() {
		t.Error("a run is changed by the merge")
	}
}

func TestConflicts(t *testing.T) {
	t.Parallel()
	change := func(s Source, f func(*journal.Begun)) Source {
		head, _ := s.Journal.Head(t.Context())
		f(head.Begun)
		return s
	}
	for want, b := range map[string]func(*journal.Begun){
		"b.parley of kind other":         func(b *journal.Begun) { b.Kind = "other" },
		"b.parley of version 2":          func(b *journal.Begun) { b.KindVersion = 2 },
		"b.parley is a fork":             func(b *journal.Begun) { b.Fork = &journal.Origin{} },
		"b.parley has no plan":           func(b *journal.Begun) { b.Plan = nil },
		`agents.x.model is "lab/x" in a`: func(b *journal.Begun) { b.Agents = []world.Agent{{Name: "x", Model: "lab/y"}} },
	} {
		_, err := New(t.Context(), []Source{run(t, "a", 1, said{0, "A"}), change(run(t, "b", 1, said{0, "A"}), b)})
		if _, ok := errors.AsType[*ConflictError](err); !ok || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	for _, deal := range []int{-1, math.MaxInt} { // a run file may hold anything
		if _, err := New(t.Context(), []Source{run(t, "a", 1, said{deal, "A"}), run(t, "b", 1)}); err == nil {
			t.Errorf("deal %d is taken", deal)
		}
	}
	runs, err := New(t.Context(), []Source{run(t, "a", 1), run(t, "b", 1)})
	if err != nil || len(texts(t, runs)) != 0 || runs.Append(t.Context()) == nil {
		t.Errorf("runs without episodes: %v", err)
	}
	if one, err := New(t.Context(), []Source{run(t, "a", 1, said{0, "A"})}); err != nil || !slices.Equal(texts(t, one), []string{"0A"}) {
		t.Errorf("one run: %v", err)
	}
}
