package results

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"parley/journal"
	"parley/llm"
	"parley/world"
)

func clockTime(seconds float64) time.Time {
	return time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC).Add(time.Duration(seconds * 1e9))
}

// begin returns the first entries of the tests' runs: two agents, and episodes that swap their seats.
func begin(episodes int) []journal.Entry {
	specs := make([]world.Spec, episodes)
	for i := range specs {
		specs[i] = world.Spec{Kind: "duel", Lineup: map[string]string{"left": "ann", "right": "bob"}, Deal: i / 2, Cell: "ann first"}
		if i%2 == 1 {
			specs[i].Lineup, specs[i].Cell = map[string]string{"left": "bob", "right": "ann"}, "bob first"
		}
	}
	return []journal.Entry{
		&journal.Begun{Version: 1, Run: "r", Kind: "duel", Seed: 3, At: clockTime(0), Plan: json.RawMessage(`{"a":1}`), Agents: []world.Agent{{Name: "ann", Model: "lab/a"}, {Name: "bob", Bot: "parrot"}}},
		&journal.Opened{At: clockTime(0)},
		&journal.Staged{Specs: world.List(specs...)},
	}
}

func turn(episode, n int) journal.Turn { return journal.Turn{Episode: episode, Turn: n} }

// ask returns a reply of a model.
func ask(t journal.Turn, seat string, at float64, text string) *journal.Replied {
	return &journal.Replied{
		Turn: t, Seat: seat, Label: "word", Agent: "ann", At: clockTime(at), Request: &llm.Request{Model: "lab/a"},
		Response: &llm.Response{Text: text, Finish: llm.FinishStop, Usage: llm.Usage{Input: 100, Output: 10, Reasoning: 4}, Metadata: llm.Metadata{Attempts: 1, Cost: 1000, Latency: 200 * time.Millisecond}},
	}
}

func end(episode int, left, right float64) *journal.Ended {
	return &journal.Ended{Episode: episode, At: clockTime(9), Outcome: world.Outcome{Scores: []world.Score{{Seat: "left", Name: "won", Value: left}, {Seat: "right", Name: "won", Value: right}, {Name: "length", Value: 2.5}}}}
}

func fold(t *testing.T, entries ...journal.Entry) *Run {
	t.Helper()
	j := &journal.Memory{}
	if err := j.Append(t.Context(), entries...); err != nil {
		t.Fatal(err)
	}
	r, err := Fold(t.Context(), j, "x.parley")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestFold(t *testing.T) {
	t.Parallel()
	failed := ask(turn(1, 0), "left", 3, "")
	failed.Response, failed.Error = nil, &llm.Error{Kind: llm.KindInvalid, Message: "no JSON", Usage: llm.Usage{Input: 50}, Metadata: llm.Metadata{Attempts: 3, Cost: 500}}
	cached := ask(turn(1, 1), "left", 4, "again")
	cached.Response.Metadata = llm.Metadata{Cached: true}
	copied := ask(turn(1, 2), "left", -9e6, "from before")
	copied.Copied = true
	repaired := ask(turn(1, 3), "left", 5, "{}")
	repaired.Response.Metadata.Parsed, repaired.Response.Finish = "repaired", llm.FinishLength
	bot := &journal.Replied{Turn: turn(1, 0), Seat: "right", Label: "word", Agent: "bob", At: clockTime(3), Response: &llm.Response{Text: "squawk"}}
	r := fold(t, append(begin(4),
		ask(turn(0, 0), "left", 1, "hello"), end(0, 1, 0), failed, bot, cached, copied, repaired,
		&journal.Ended{Episode: 1, At: clockTime(5), Outcome: world.Outcome{Failed: "it broke"}},
		&journal.Turned{Turn: turn(2, 0), Calls: 1},
		&journal.Closed{At: clockTime(10), State: journal.Stopped, Reason: journal.Reason{Kind: journal.ByBudget, Detail: "it is spent"}})...)
	if r.State != "stopped" || r.Reason != "budget: it is spent" || r.Processes != 1 || r.Played != 10*time.Second {
		t.Errorf("state %q, reason %q, %v processes, %v", r.State, r.Reason, r.Processes, r.Played)
	}
	if want := (journal.EpisodeCounts{Total: 4, Ended: 1, Failed: 1, Playing: 1, Waiting: 1}); r.Episodes != want {
		t.Errorf("%+v, want %+v", r.Episodes, want)
	}
	all := r.Total()
	want := Account{
		Spending: journal.Spending{Calls: 5, FailedCalls: 1, Bots: 1, Usage: llm.Usage{Input: 250, Output: 20, Reasoning: 8}, Cost: 2500},
		Reused:   2, Retried: 1, Repaired: 1, Invalid: 1, Cut: 1,
	}
	if all != want {
		t.Errorf("%+v, want %+v", all, want)
	}
	if len(r.Accounts) != 2 || r.Accounts[0].Kind != "ask" || r.Accounts[0].Model != "lab/a" || r.Accounts[1].Kind != "bot" {
		t.Errorf("%+v", r.Accounts)
	}
	if len(r.Times) != 1 || r.Times[0].Latency.Count() != 2 {
		t.Errorf("only what was really asked for has a latency: %d", r.Times[0].Latency.Count())
	}
	if len(r.Failures) != 1 || r.Failures[0].Kind != llm.KindInvalid || r.Failures[0].Example != "no JSON" {
		t.Errorf("%+v", r.Failures)
	}
	if r.Spent[1].Calls != 4 || r.Spent[1].Cost != 1500 {
		t.Errorf("%+v", r.Spent)
	}
	list := slices.Collect(r.All())
	if len(list) != 4 || list[0].State != "ended" || list[1].Failed != "it broke" || list[2].State != "playing" || list[3].State != "waiting" {
		t.Errorf("%+v", list)
	}
	if r.Model("ann") != "lab/a" || r.Model("bob") != "bot parrot" || r.Model("eve") != "" {
		t.Error("models of agents")
	}
}

func TestFoldOfNothing(t *testing.T) {
	t.Parallel()
	if _, err := Fold(t.Context(), &journal.Memory{}, "x"); !errors.Is(err, ErrEmpty) {
		t.Errorf("%v", err)
	}
	if r := fold(t, begin(2)[0]); r.State != StateNew || r.Episodes.Total != 0 || len(r.Scores(func(g Group) Group { return g })) != 0 {
		t.Errorf("%+v", r)
	}
	if r := fold(t, begin(2)...); r.State != StateCutOff {
		t.Errorf("%s", r.State)
	}
}

// TestAnyOrder: the order in which concurrent episodes were recorded does not change the view.
func TestAnyOrder(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 1))
	const episodes = 40
	lines := make([][]journal.Entry, episodes)
	for e := range lines {
		for i := range 3 {
			lines[e] = append(lines[e], ask(turn(e, i), "left", 1, "x"))
		}
		lines[e] = append(lines[e], end(e, r.NormFloat64(), r.NormFloat64()*1e6))
	}
	one := fold(t, append(begin(episodes), inOrder(lines)...)...)
	for range 20 {
		other := fold(t, append(begin(episodes), shuffled(r, lines)...)...)
		for _, by := range []func(Group) Group{func(g Group) Group { return g }, func(g Group) Group { return Group{Score: g.Score, Agent: g.Agent} }} {
			a, b := one.Scores(by), other.Scores(by)
			if !reflect.DeepEqual(a, b) {
				t.Fatalf("scores differ:\n%v\n%v", a, b)
			}
		}
		if !reflect.DeepEqual(one.Accounts, other.Accounts) || !reflect.DeepEqual(one.Spent, other.Spent) || !reflect.DeepEqual(one.Timeline, other.Timeline) {
			t.Fatal("accounts differ")
		}
	}
}

func inOrder(lines [][]journal.Entry) (out []journal.Entry) {
	for _, l := range lines {
		out = append(out, l...)
	}
	return out
}

// shuffled mixes the entries of episodes and keeps the order within each.
func shuffled(r *rand.Rand, lines [][]journal.Entry) (out []journal.Entry) {
	left := append([][]journal.Entry(nil), lines...)
	for len(left) > 0 {
		i := r.IntN(len(left))
		out = append(out, left[i][0])
		if left[i] = left[i][1:]; len(left[i]) == 0 {
			left = append(left[:i], left[i+1:]...)
		}
	}
	return out
}

func TestScores(t *testing.T) {
	t.Parallel()
	odd := end(3, math.NaN(), math.Inf(1))
	r := fold(t, append(begin(4), end(0, 1, 0), end(1, 0, 1), end(2, 1, 1), odd)...)
	got := map[string]string{}
	for _, s := range r.Scores(func(g Group) Group { return Group{Score: g.Score, Agent: g.Agent, Model: g.Model} }) {
		got[s.Score+" "+s.Agent] = fmt.Sprintf("%v %.3f n=%d %s", s.Model, s.Estimate().Value, s.Sample.Episodes(), s.Estimate().Method)
	}
	// ann sat left in 0 and 2 and right in 1, and won all of them.
	want := map[string]string{"won ann": "lab/a 1.000 n=3 cluster wilson", "won bob": "bot parrot 0.333 n=3 cluster wilson", "length ": " 2.500 n=4 constant"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v\nwant %v", got, want)
	}
}

// TestLongStage: waiting episodes, and one that cannot have begun yet, take no memory, and no time to find what counts.
func TestLongStage(t *testing.T) {
	t.Parallel()
	entries := begin(2)
	entries[2] = &journal.Staged{Specs: world.Repeat(world.Spec{Kind: "duel"}, world.MaxEpisodes)}
	r := fold(t, append(entries, ask(turn(1, 0), "left", 1, "x"), end(1, 1, 0), ask(turn(world.MaxEpisodes-1, 0), "left", 2, "y"))...)
	if r.Episodes.Waiting != world.MaxEpisodes-2 || len(r.Spent) != 2 || r.Spent[1].Calls != 1 {
		t.Errorf("%+v: %+v", r.Episodes, r.Spent)
	}
	n := 0
	r.Each(func(world.Played) { n++ })
	r.Everything = true
	r.Each(func(p world.Played) { n += p.Episode })
	if n != 1 {
		t.Errorf("%d", n)
	}
}

// TestTimelineKeepsCount: however long a run is, there are few parts, and every call is counted.
func TestTimelineKeepsCount(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var line Timeline
		var want, all journal.Spending
		for range rapid.IntRange(1, 200).Draw(t, "n") {
			at := time.Duration(rapid.Int64Range(0, int64(1000*time.Hour)).Draw(t, "at"))
			failed := rapid.Bool().Draw(t, "failed")
			e := &journal.Replied{Request: &llm.Request{}, Response: &llm.Response{Usage: llm.Usage{Input: 2, Output: 1}, Metadata: llm.Metadata{Cost: 5}}}
			if failed {
				e.Response, e.Error = nil, &llm.Error{Usage: llm.Usage{Input: 2}}
			}
			line.add(at, e)
			want.Add(e)
			if int(at/line.Width) >= len(line.Parts) || line.Parts[at/line.Width].Calls == 0 {
				t.Fatalf("%v is not where it belongs: %d parts of %v", at, len(line.Parts), line.Width)
			}
		}
		for _, p := range line.Parts {
			all = all.Plus(p)
		}
		if all != want || len(line.Parts) > timelineParts {
			t.Fatalf("%+v in %d parts, want %+v", all, len(line.Parts), want)
		}
	})
}

// TestProcesses leaves out the time between processes, also after one that was cut off.
func TestProcesses(t *testing.T) {
	t.Parallel()
	r := fold(t, append(begin(1),
		ask(turn(0, 0), "left", 2, "a"), &journal.Closed{At: clockTime(3)},
		&journal.Opened{At: clockTime(5000)}, ask(turn(0, 1), "left", 5001, "b"),
		&journal.Opened{At: clockTime(90000)}, ask(turn(0, 2), "left", 90004, "c"))...)
	if r.Processes != 3 || r.Played != 8*time.Second {
		t.Errorf("%d processes, %v", r.Processes, r.Played)
	}
	if n := len(r.Timeline.Parts); time.Duration(n)*r.Timeline.Width > 10*time.Second {
		t.Errorf("%d parts of %v", n, r.Timeline.Width)
	}
}

func TestBatches(t *testing.T) {
	t.Parallel()
	r := fold(t, append(begin(1),
		&journal.Batched{At: clockTime(1), Step: journal.BatchIntended, Key: "k1", Model: "lab/a", Lines: []string{"x", "y"}, Worst: 9},
		&journal.Batched{At: clockTime(2), Step: journal.BatchIntended, Key: "k2", Model: "lab/b"},
		&journal.Batched{At: clockTime(61), Step: journal.BatchClosed, Key: "k1", Why: "done"})...)
	if len(r.Batches) != 2 || r.Batches[0].Lines != 2 || r.Batches[0].Took != time.Minute || r.Batches[0].Closed != "done" || r.Batches[1].Closed != "" {
		t.Errorf("%+v", r.Batches)
	}
}
