package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"parley/internal/run/results"
	"parley/journal"
	"parley/world"
)

// episode is an episode of two agents with their scores.
type episode struct {
	cell        string
	deal        int
	left, right string
	l, r        float64
}

func run(t *testing.T, seed uint64, episodes []episode) *results.Run {
	t.Helper()
	var specs []world.Spec
	var ends []journal.Entry
	names := map[string]bool{}
	begun := &journal.Begun{Version: 1, Run: "r", Kind: "duel", Seed: seed}
	for i, e := range episodes {
		specs = append(specs, world.Spec{Kind: "duel", Params: json.RawMessage(`{}`), Lineup: map[string]string{"left": e.left, "right": e.right}, Deal: e.deal, Cell: e.cell})
		ends = append(ends, &journal.Ended{Episode: i, Outcome: world.Outcome{Scores: []world.Score{{Seat: "left", Name: "points", Value: e.l}, {Seat: "right", Name: "points", Value: e.r}}}})
		for _, name := range []string{e.left, e.right} {
			if !names[name] {
				names[name] = true
				begun.Agents = append(begun.Agents, world.Agent{Name: name, Model: "lab/" + name[:1]})
			}
		}
	}
	j := &journal.Memory{}
	if err := j.Append(t.Context(), append([]journal.Entry{begun, &journal.Opened{}, &journal.Staged{Specs: world.List(specs...)}}, ends...)...); err != nil {
		t.Fatal(err)
	}
	r, err := results.Fold(t.Context(), j, "x")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// duels returns deals that were played both ways round. A deal is equally good or bad for both, which only
// a paired comparison takes out; a is better by gain.
func duels(r *rand.Rand, deals int, gain float64) (out []episode) {
	for d := range deals {
		luck := 3 * r.NormFloat64()
		score := func(gain float64) float64 { return luck + gain + 0.3*r.NormFloat64() }
		out = append(out,
			episode{"a first", d, "a", "b", score(gain), score(0)},
			episode{"b first", d, "b", "a", score(0), score(gain)})
	}
	return out
}

func one(t *testing.T, runs []*results.Run, names []string, c Config) Comparison {
	t.Helper()
	r, err := Runs(runs, names, c)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Comparisons) != 1 {
		t.Fatalf("%d comparisons: %+v", len(r.Comparisons), r.Comparisons)
	}
	return r.Comparisons[0]
}

// TestPlanted finds a difference that is far smaller than the luck of deals.
func TestPlanted(t *testing.T) {
	t.Parallel()
	r := run(t, 1, duels(rand.New(rand.NewPCG(1, 1)), 40, 0.2))
	for _, by := range []string{ByAgent, byModel} {
		c := one(t, []*results.Run{r}, []string{"x"}, Config{By: by})
		if !c.Paired || c.N != 40 || !c.Differs() || !c.Difference.Holds(0.2) || c.Difference.Value < 0 || c.More != 0 {
			t.Errorf("by %s: %+v", by, c)
		}
	}
	// Cells differ only in which agent has which seat.
	res, err := Runs([]*results.Run{r}, []string{"x"}, Config{By: byCell})
	if err != nil || len(res.Comparisons) != 2 || res.Comparisons[0].Of != "left" || res.Comparisons[0].Difference.Value < 0 || res.Comparisons[1].Difference.Value > 0 {
		t.Errorf("%+v, %v", res, err)
	}
}

// TestFiles compares runs of one plan: in pairs if the seed is the same, as wholes otherwise.
func TestFiles(t *testing.T) {
	t.Parallel()
	names := []string{"old", "new"}
	luck := func() *rand.Rand { return rand.New(rand.NewPCG(7, 7)) }
	old, better, other := run(t, 1, duels(luck(), 30, 0)), run(t, 1, duels(luck(), 30, 0.5)), run(t, 2, duels(luck(), 30, 0.5))
	for _, test := range []struct {
		run     *results.Run
		paired  bool
		differs bool
	}{{better, true, true}, {other, false, false}} {
		res, err := Runs([]*results.Run{old, test.run}, names, Config{})
		if err != nil || len(res.Comparisons) != 2 {
			t.Fatalf("%+v, %v", res, err)
		}
		for _, c := range res.Comparisons {
			differs := test.differs && c.Of == "a" // b is unchanged
			if c.Paired != test.paired || c.Differs() != differs || c.A != "old" || c.B != "new" {
				t.Errorf("%+v", c)
			}
		}
	}
}

// TestNone runs 100 experiments without a difference, with three corrected comparisons
// each: about one in twenty may have a false finding.
func TestNone(t *testing.T) {
	t.Parallel()
	draws(t)
	r := rand.New(rand.NewPCG(3, 3))
	wrong := 0
	for range 100 {
		var all []episode
		for d := range 15 {
			for _, pair := range [][2]string{{"a", "b"}, {"b", "a"}, {"a", "c"}, {"c", "a"}, {"b", "c"}, {"c", "b"}} {
				all = append(all, episode{pair[0] + pair[1], d, pair[0], pair[1], r.NormFloat64(), r.NormFloat64()})
			}
		}
		res, err := Runs([]*results.Run{run(t, 1, all)}, []string{"x"}, Config{})
		if err != nil || len(res.Comparisons) != 3 {
			t.Fatal(len(res.Comparisons), err)
		}
		for _, c := range res.Comparisons {
			if c.Differs() {
				wrong++
				break
			}
		}
	}
	if wrong > 13 { // 5 are expected; chance gives more than 13 once in two thousand times
		t.Errorf("%d of 100 experiments have a false finding", wrong)
	}
}

// TestShares checks that scores of 0 and 1 get exact tests.
func TestShares(t *testing.T) {
	t.Parallel()
	var paired, alone []episode
	for d := range 30 {
		won := float64(d % 2)
		paired = append(paired, episode{"", d, "a", "b", 1, won})
		alone = append(alone, episode{"", d, "c", "d", won, 0})
	}
	c := one(t, []*results.Run{run(t, 1, paired)}, []string{"x"}, Config{})
	if c.Test.Method != "mcnemar" || !c.Paired || !c.Differs() || !strings.Contains(c.Note, "never had the same seat") {
		t.Errorf("%+v", c)
	}
	// Two files without an agent in common are compared seat by seat, unpaired.
	res, err := Runs([]*results.Run{run(t, 1, paired), run(t, 2, alone)}, []string{"p", "q"}, Config{Correct: bh})
	if err != nil || len(res.Comparisons) != 2 || res.Comparisons[0].Test.Method != "fisher" || res.Comparisons[0].Of != "left" || !res.Comparisons[0].Differs() {
		t.Errorf("%+v, %v", res, err)
	}
}

func TestNothingToCompare(t *testing.T) {
	t.Parallel()
	r := run(t, 1, []episode{{"", 0, "a", "a", 1, 1}, {"", 1, "a", "a", math.NaN(), 1}})
	for _, c := range []Config{{}, {By: byCell}, {By: byModel}, {By: ByFile, Against: "y"}} {
		if _, err := Runs([]*results.Run{r}, []string{"x"}, c); !errors.Is(err, ErrOne) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestManyCells checks that P from random draws is small enough to find one of many comparisons.
func TestManyCells(t *testing.T) {
	t.Parallel()
	draws(t)
	r := rand.New(rand.NewPCG(2, 2))
	var all []episode
	for d := range 40 {
		for cell := range 16 {
			gain := 0.0
			if cell == 7 {
				gain = 3
			}
			all = append(all, episode{fmt.Sprint("cell ", cell), d, "a", "b", gain + r.NormFloat64(), 0})
		}
	}
	res, err := Runs([]*results.Run{run(t, 1, all)}, []string{"x"}, Config{By: byCell, Against: "cell 7"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range res.Comparisons {
		if c.Of == "left" && (!c.Differs() || c.B != "cell 7" || c.Difference.Value > 0) {
			t.Errorf("%+v", c)
		}
		if c.Of == "right" && (c.Differs() || c.More != -1) {
			t.Errorf("%+v", c)
		}
	}
	if res, err = Runs([]*results.Run{run(t, 1, all)}, []string{"x"}, Config{By: byCell}); err != nil || len(res.Comparisons) != 2*16*15/2 {
		t.Fatal(len(res.Comparisons), err)
	}
	found := 0
	for _, c := range res.Comparisons {
		if c.Differs() {
			found++
		}
	}
	if found != 15 {
		t.Errorf("%d found, want 15", found)
	}
}

func TestDocument(t *testing.T) {
	t.Parallel()
	res, err := Runs([]*results.Run{run(t, 1, duels(rand.New(rand.NewPCG(1, 1)), 40, 0.2))}, []string{"x"}, Config{})
	if err != nil {
		t.Fatal(err)
	}
	even := Comparison{Score: "won", A: "a", B: "b", N: 1, Adjusted: math.NaN(), More: -1}
	even.Difference.Value, even.Effect.Value, even.Test.P = math.NaN(), math.NaN(), math.NaN()
	same := Comparison{Score: "won", A: "a", B: "b", N: 9, Adjusted: 1, More: -1}
	open := Comparison{Score: "won", Of: "first", A: "a", B: "b", N: 9, Adjusted: 0.3, More: 12, Episodes: 5_000_000, Note: "mind this"}
	res.Comparisons = append(res.Comparisons, even, same, open)
	d := res.Document("test")
	var all []string
	for _, b := range d.Sections[0].Blocks {
		all = append(append(all, b.Title), b.List...)
	}
	text := strings.Join(all, "\n")
	for _, want := range []string{
		"Differs\npoints: a is above b, ", "(p < 0.001, paired, 40 deals in 80 episodes).", "Cannot be shown yet\nwon: a and b: 1 deal is too few to show a difference; play more of them.\nwon of first: a and b,", "about 12 more deals (more than a million episodes)", "; mind this.",
		"exactly the same in all of 9 deals",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("it does not say %q:\n%s", want, text)
		}
	}
	if rows := d.Tables()[0].Rows; len(rows) != 4 || rows[3][13].Text != "open" {
		t.Errorf("%+v", rows)
	}
}

// TestInterest checks that people see the most interesting of many comparisons, under one heading for each
// score, and that files have all.
func TestInterest(t *testing.T) {
	t.Parallel()
	r := &Result{By: byCell, Correct: holm, Groups: []string{"a", "b", "c"}}
	for i := range 50 {
		c := Comparison{Score: []string{"points", "won"}[i%2], A: "a", B: fmt.Sprint(i), N: 9, Adjusted: float64(50-i) / 50, More: -1}
		switch {
		case i == 7:
			c.Adjusted = math.NaN()
		case i >= 40:
			c.Adjusted, c.Effect.Value = 0.001, float64(i-45) // the same P, another effect
		}
		r.Comparisons = append(r.Comparisons, c)
	}
	slices.SortStableFunc(r.Comparisons, byInterest)
	if first, last := r.Comparisons[0].B, r.Comparisons[49].B; first != "40" || last != "7" {
		t.Errorf("%s first, %s last", first, last)
	}
	table := r.Document("").Tables()[0]
	people := table.Trimmed()
	scores := ""
	for _, row := range people.Rows {
		if !strings.HasSuffix(scores, row[0].Text+" ") {
			scores += row[0].Text + " "
		}
	}
	if len(table.Rows) != 50 || len(people.Rows) != shown || scores != "points won " || !strings.HasPrefix(people.Rest, "30 more comparisons, all without a finding") {
		t.Errorf("%d of %d, %s, %s", len(people.Rows), len(table.Rows), scores, people.Rest)
	}
	r.all = true
	if all := r.Document("").Tables()[0].Trimmed(); len(all.Rows) != 50 || all.Rest != "" {
		t.Errorf("%d, %s", len(all.Rows), all.Rest)
	}
}

// TestCompareByFactors compares by tags and params, alone and together: the deal, the seat and whatever
// is not a factor are the same on both sides.
func TestCompareByFactors(t *testing.T) {
	t.Parallel()
	luck := rand.New(rand.NewPCG(4, 4))
	j := &journal.Memory{}
	begun := &journal.Begun{Version: 1, Run: "r", Kind: "k", Seed: 1}
	for _, prompt := range []string{"terse", "long"} {
		for _, family := range []string{"gpt", "llama"} {
			begun.Agents = append(begun.Agents, world.Agent{Name: prompt + family, Model: "lab/" + family, Tags: map[string]string{"prompt": prompt, "family": family}})
		}
	}
	var specs []world.Spec
	var ends []journal.Entry
	for deal := range 20 {
		luckOfDeal := 3 * luck.NormFloat64()
		for i, a := range begun.Agents {
			for _, n := range []int{2, 10} {
				value := luckOfDeal + 0.1*float64(n) - float64(i/2) + 0.2*luck.NormFloat64() // long is worse by 1, and 10 better than 2 by 0.8
				ends = append(ends, &journal.Ended{Episode: len(specs), Outcome: world.Outcome{Scores: []world.Score{{Seat: "x", Name: "points", Value: value}}}})
				specs = append(specs, world.Spec{Kind: "k", Params: json.RawMessage(fmt.Sprintf(`{"n":%d}`, n)), Lineup: map[string]string{"x": a.Name}, Deal: deal})
			}
		}
	}
	if err := j.Append(t.Context(), append([]journal.Entry{begun, &journal.Opened{}, &journal.Staged{Specs: world.List(specs...)}}, ends...)...); err != nil {
		t.Fatal(err)
	}
	r, err := results.Fold(t.Context(), j, "x")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		by, a, b, of string
		difference   float64
		comparisons  int
	}{
		{"prompt", "terse", "long", "", 1, 1},
		{"family", "gpt", "llama", "", 0, 1},
		{"n", "2", "10", "x", -0.8, 1},
		{"prompt,n", "terse, 2", "long, 10", "", 0.2, 6},
		{"lineup", "x=tersegpt", "x=longgpt", "x", 1, 6},
	} {
		res, err := Runs([]*results.Run{r}, []string{"x"}, Config{By: c.by, Correct: none})
		if err != nil || len(res.Comparisons) != c.comparisons {
			t.Fatalf("by %s: %+v, %v", c.by, res, err)
		}
		found := false
		for _, got := range res.Comparisons {
			if got.A == c.a && got.B == c.b {
				found = true
				if !got.Paired || got.N != 20 || got.Of != c.of || math.Abs(got.Difference.Value-c.difference) > 0.2 || got.Difference.Half() > 0.2 {
					t.Errorf("by %s: %+v", c.by, got)
				}
			}
		}
		if !found {
			t.Errorf("by %s: %s and %s are not compared: %+v", c.by, c.a, c.b, res.Groups)
		}
	}
}
