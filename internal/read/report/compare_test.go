package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"parley/internal/kit/statmath"
	"parley/internal/run/results"
	"parley/journal"
	"parley/world"
	"parley/world/worldtest"
)

// episode is an episode of two agents with their scores.
type episode struct {
	cell        string
	deal        int
	left, right string
	l, r        float64
}

func run(t *testing.T, seed uint64, episodes []episode, copies ...string) *results.Run {
	t.Helper()
	var specs []world.Spec
	var ends []journal.Entry
	names := map[string]bool{}
	begun := &journal.Begun{Version: 1, Run: "r", Kind: "duel", Seed: seed}
	for i, e := range episodes {
		specs = append(specs, world.Spec{Kind: "duel", Params: json.RawMessage(`{}`), Lineup: map[string]string{"left": e.left, "right": e.right}, Deal: e.deal, Cell: e.cell})
		var scores []world.Score
		for _, name := range append([]string{"points"}, copies...) {
			scores = append(scores, world.Score{Seat: "left", Name: name, Value: e.l}, world.Score{Seat: "right", Name: name, Value: e.r})
		}
		ends = append(ends, &journal.Ended{Episode: i, Outcome: world.Outcome{Scores: scores}})
		for _, name := range []string{e.left, e.right} {
			if !names[name] {
				names[name] = true
				begun.Agents = append(begun.Agents, world.Agent{Name: name, Model: "lab/" + name[:min(1, len(name))]})
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

func one(t *testing.T, runs []*results.Run, names []string, c CompareConfig) Comparison {
	t.Helper()
	r, err := Compare(runs, names, c)
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
		c := one(t, []*results.Run{r}, []string{"x"}, CompareConfig{By: by})
		if !c.Paired || c.N != 40 || !c.Differs() || !c.Difference.Holds(0.2) || c.Difference.Value < 0 || c.More != 0 {
			t.Errorf("by %s: %+v", by, c)
		}
	}
	// Cells differ only in which agent has which seat.
	res, err := Compare([]*results.Run{r}, []string{"x"}, CompareConfig{By: byCell})
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
		res, err := Compare([]*results.Run{old, test.run}, names, CompareConfig{})
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
		res, err := Compare([]*results.Run{run(t, 1, all)}, []string{"x"}, CompareConfig{})
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

// TestSameScores: a score that is the same as another in every episode is one comparison with it, unless it is asked for.
func TestSameScores(t *testing.T) {
	t.Parallel()
	var all []episode
	for d := range 30 {
		all = append(all, episode{"", d, "a", "b", float64(d % 2), 0})
	}
	alone, err := Compare([]*results.Run{run(t, 1, all)}, []string{"x"}, CompareConfig{})
	if err != nil {
		t.Fatal(err)
	}
	twice := run(t, 1, all, "copy")
	got, err := Compare([]*results.Run{twice}, []string{"x"}, CompareConfig{})
	if err != nil || len(got.Comparisons) != len(alone.Comparisons) || len(got.Notes) != 1 || !strings.Contains(got.Notes[0], "copy is the same as ") {
		t.Errorf("%+v %v", got, err)
	}
	both, err := Compare([]*results.Run{twice}, []string{"x"}, CompareConfig{Scores: []string{"points", "copy"}})
	if err != nil || len(both.Comparisons) != 2*len(alone.Comparisons) {
		t.Errorf("%+v %v", both, err)
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
	c := one(t, []*results.Run{run(t, 1, paired)}, []string{"x"}, CompareConfig{})
	if c.Test.Method != "mcnemar" || !c.Paired || !c.Differs() || !strings.Contains(c.Note, "never had the same seat") {
		t.Errorf("%+v", c)
	}
	// Two files without an agent in common are compared seat by seat, unpaired.
	res, err := Compare([]*results.Run{run(t, 1, paired), run(t, 2, alone)}, []string{"p", "q"}, CompareConfig{Correct: bh})
	if err != nil || len(res.Comparisons) != 2 || res.Comparisons[0].Test.Method != "fisher" || res.Comparisons[0].Of != "left" || !res.Comparisons[0].Differs() {
		t.Errorf("%+v, %v", res, err)
	}
}

func TestNothingToCompare(t *testing.T) {
	t.Parallel()
	r := run(t, 1, []episode{{"", 0, "a", "a", 1, 1}, {"", 1, "a", "a", math.NaN(), 1}})
	for _, c := range []CompareConfig{{}, {By: byCell}, {By: byModel}, {By: ByFile, Against: "y"}} {
		if _, err := Compare([]*results.Run{r}, []string{"x"}, c); !errors.Is(err, ErrNothingToCompare) {
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
	res, err := Compare([]*results.Run{run(t, 1, all)}, []string{"x"}, CompareConfig{By: byCell, Against: "cell 7"})
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
	if res, err = Compare([]*results.Run{run(t, 1, all)}, []string{"x"}, CompareConfig{By: byCell}); err != nil || len(res.Comparisons) != 2*16*15/2 {
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
	res, err := Compare([]*results.Run{run(t, 1, duels(rand.New(rand.NewPCG(1, 1)), 40, 0.2))}, []string{"x"}, CompareConfig{})
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
	r := &CompareResult{By: byCell, Correct: holm, Groups: []string{"a", "b", "c"}}
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
	if len(table.Rows) != 50 || len(people.Rows) != maxComparisons || scores != "points won " || !strings.HasPrefix(people.Rest, "30 more comparisons, all without a finding") {
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
		res, err := Compare([]*results.Run{r}, []string{"x"}, CompareConfig{By: c.by, Correct: none})
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

// TestCopies checks that exact copies count once and that the result names them and says what to do, also for two runs
// that have the same plays.
func TestCopies(t *testing.T) {
	t.Parallel()
	played := func(first byte, plays ...byte) *results.Run {
		var all []episode
		for d, p := range plays {
			all = append(all, episode{"", d, "a", "b", float64(p), 0})
		}
		r := run(t, 1, all)
		for i, p := range plays {
			e, _ := r.Head.Ended.Of(i)
			e.Play = journal.Digest{first, p}
			r.Head.Ended.Put(0, &e)
		}
		return r
	}
	text := func(runs []*results.Run, names ...string) string {
		res, err := Compare(runs, names, CompareConfig{})
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(res.Document("").Sections)
	}
	same := played(1, 1, 2, 1, 2, 1)
	for _, want := range []string{"x: Of 5 episodes, 3 are exact copies of others and do not count.", ": to get new plays, ", "5 deals are 2 distinct plays"} {
		if got := text([]*results.Run{same}, "x"); !strings.Contains(got, want) {
			t.Errorf("it does not say %q: %s", want, got)
		}
	}
	const alike = "deals were played word for word alike on both sides"
	if got := strings.ToLower(text([]*results.Run{played(1, 1, 2, 3, 4), played(1, 1, 2, 5, 6)}, "x", "y")); !strings.Contains(got, "2 of 4 "+alike) {
		t.Error(got)
	}
	if got := text([]*results.Run{played(1, 1, 2, 3, 4), played(2, 1, 2, 5, 6)}, "x", "y"); strings.Contains(got, alike) {
		t.Error(got)
	}
}

// quiz returns a kind whose episodes are about a question, or depend on chance if there is none.
func quiz() world.Kind {
	return world.Define(asking{worldtest.Simple[question]{Kind: world.About{Name: "quiz"}}})
}

type (
	asking   struct{ worldtest.Simple[question] }
	question struct {
		Question string `json:"question"`
	}
)

func (asking) TaskName(q *question) world.Task {
	return world.Task{Name: q.Question, Whole: q.Question != ""}
}

// quizzed returns a run of n questions of a book, the first of which has deal number first. A
// question is equally hard for all agents.
func quizzed(t *testing.T, kind, book string, seed uint64, first, n int) *results.Run {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	var specs []world.Spec
	var ends []journal.Entry
	for i := range n {
		specs = append(specs, world.Spec{Kind: kind, Params: json.RawMessage(fmt.Sprintf(`{"question":%q}`, book+strings.Repeat("?", i))), Lineup: map[string]string{"s": "a"}, Deal: first + i})
		if book == "" {
			specs[i].Params = json.RawMessage(`{}`)
		}
		ends = append(ends, &journal.Ended{Episode: i, Outcome: world.Outcome{Scores: []world.Score{{Seat: "s", Name: "right", Value: float64(10*i) + r.NormFloat64()}}}})
	}
	j := &journal.Memory{}
	begun := &journal.Begun{Version: 1, Run: fmt.Sprint(book, seed), Kind: kind, KindVersion: 1, Seed: seed, Agents: []world.Agent{{Name: "a", Model: "lab/a"}}}
	if err := j.Append(t.Context(), append([]journal.Entry{begun, &journal.Opened{}, &journal.Staged{Specs: world.List(specs...)}}, ends...)...); err != nil {
		t.Fatal(err)
	}
	out, err := results.Fold(t.Context(), j, "x")
	if err != nil {
		t.Fatal(err)
	}
	out.Know(quiz())
	return out
}

// TestTaskName checks that only episodes with the same deal are paired. If a kind says what the deal
// is, seed and number do not matter; otherwise they decide.
func TestTaskName(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		a, b   *results.Run
		paired bool
		note   string
	}{
		{"the same questions, another seed", quizzed(t, "quiz", "maths", 1, 0, 9), quizzed(t, "quiz", "maths", 2, 5, 9), true, ""},
		{"other questions, the same seed", quizzed(t, "quiz", "maths", 1, 0, 9), quizzed(t, "quiz", "words", 1, 0, 9), false, "had no deals in common"},
		{"chance, the same seed", quizzed(t, "quiz", "", 1, 0, 9), quizzed(t, "quiz", "", 1, 0, 9), true, ""},
		{"chance, another seed", quizzed(t, "quiz", "", 1, 0, 9), quizzed(t, "quiz", "", 2, 0, 9), false, ""},
		{"other kinds, the same seed", quizzed(t, "quiz", "", 1, 0, 9), quizzed(t, "duel", "", 1, 0, 9), false, "had no deals in common"},
	} {
		c := one(t, []*results.Run{test.a, test.b}, []string{"x", "y"}, CompareConfig{})
		if c.Paired != test.paired || c.N != 9 || !strings.Contains(c.Note, test.note) || test.note == "" && c.Note != "" {
			t.Errorf("%s: %+v", test.name, c)
		}
	}
}

// TestNoise checks that nothing is planned for a difference that is likely noise, and that the result says how large
// a difference can be.
func TestNoise(t *testing.T) {
	t.Parallel()
	even := func(gain float64) (out []episode) {
		for d := range 20 {
			out = append(out, episode{"", d, "a", "b", gain + float64(d%2), float64((d / 2) % 2)})
		}
		return out
	}
	for _, test := range []struct {
		gain float64
		open bool
	}{{0.01, false}, {0.25, true}} {
		res, err := Compare([]*results.Run{run(t, 1, even(test.gain))}, []string{"x"}, CompareConfig{})
		if err != nil {
			t.Fatal(err)
		}
		c := res.Comparisons[0]
		if c.Differs() || (c.More > 0) != test.open {
			t.Errorf("%v: %+v", test.gain, c)
		}
		text := fmt.Sprint(res.Document("").Sections[0].Blocks)
		if open := strings.Contains(text, "would show it"); open != test.open {
			t.Errorf("%v: %s", test.gain, text)
		}
		if bound := "no difference larger than " + short(c.Difference.High) + " is likely"; strings.Contains(text, bound) == test.open {
			t.Errorf("%v: %q in %s", test.gain, bound, text)
		}
	}
}

// TestConstantSides checks that two groups that never vary but differ are not called the same, and that no
// interval has zero width.
func TestConstantSides(t *testing.T) {
	t.Parallel()
	one := func(seed uint64, points float64) *results.Run {
		var all []episode
		for d := range 6 {
			all = append(all, episode{"", d, "a", "b", points, 0})
		}
		return run(t, seed, all)
	}
	for _, c := range []struct {
		a, b *results.Run
		want string
	}{
		{one(1, 3), one(2, 1), "spread is unknown"},
		{one(1, 3), one(1, 1), "spread is unknown"},
		{one(1, 3), one(2, 3), "exactly the same"},
	} {
		res, err := Compare([]*results.Run{c.a, c.b}, []string{"x", "y"}, CompareConfig{})
		if err != nil {
			t.Fatal(err)
		}
		got := res.Comparisons[0]
		if text := got.nothing(); !strings.Contains(text, c.want) || !math.IsInf(got.Difference.Half(), 1) {
			t.Errorf("%s: %+v", text, got)
		}
	}
}

// TestMeansOfWhatIsCompared checks that if agents play against themselves, the finding says that the means weigh
// episodes differently from the difference, and that one more deal takes all of its episodes.
func TestMeansOfWhatIsCompared(t *testing.T) {
	t.Parallel()
	var all []episode
	for d := range 8 {
		luck := float64(d % 3)
		all = append(all, episode{"", d, "a", "a", 3 + luck, 0}, episode{"", d, "a", "b", 3 + luck, 1}, episode{"", d, "b", "a", 2, 1 - luck}, episode{"", d, "b", "b", 2, 1 + luck})
	}
	res, err := Compare([]*results.Run{run(t, 1, all)}, []string{"x"}, CompareConfig{})
	if err != nil {
		t.Fatal(err)
	}
	c := res.Comparisons[0]
	if d := c.MeanA.Value - c.MeanB.Value; math.Abs(d-c.Difference.Value) < 1e-6 || !strings.Contains(c.Note, "the means are over all episodes") {
		t.Errorf("%v, %+v", d, c)
	}
	if c.perDeal != 4 {
		t.Errorf("a deal takes %d episodes, want 4", c.perDeal)
	}
}

// pairsOf returns n pairs whose differences are normal, with exactly this mean and a standard deviation of 1.
func pairsOf(n int, mean float64) pairing {
	r := rand.New(rand.NewPCG(11, 11))
	xs := make([]float64, n)
	for i := range xs {
		xs[i] = r.NormFloat64()
	}
	e := statmath.Mean(xs, confidence)
	for i := range xs {
		xs[i] = mean + (xs[i]-e.Mean)/e.SD
	}
	return pairing{paired: true, a: xs, b: make([]float64, n)}
}

// TestLeast checks the number of units below which an exact test cannot show anything, because it has a smallest P:
// 2/2^n for signs of n pairs and for McNemar's test, 2/C(2n, n) for Fisher's of n against n.
func TestLeast(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name           string
		paired, shares bool
		level          float64
		want           int
	}{
		{"signs", true, false, 0.05, 6},
		{"signs, Holm over 24", true, false, 0.05 / 24, 10},
		{"mcnemar, Holm over 24", true, true, 0.05 / 24, 10},
		{"fisher", false, true, 0.05, 4},
		{"fisher, Holm over 24", false, true, 0.05 / 24, 7},
		{"welch", false, false, 0.05 / 24, 2},
	} {
		if got := leastUnits(c.paired, c.shares, 0, c.level); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

// TestNeeded checks that the tests find a difference in about four of five samples with as many units as it needs. With
// PARLEY_SWEEP, which .ci/run kills sets, there are more samples, and there is less room for chance.
func TestNeeded(t *testing.T) {
	t.Parallel()
	draws(t)
	normal := func(mean float64) func(*rand.Rand) float64 {
		return func(r *rand.Rand) float64 { return mean + r.NormFloat64() }
	}
	share := func(p float64) func(*rand.Rand) float64 {
		return func(r *rand.Rand) float64 { return map[bool]float64{true: 1}[r.Float64() < p] }
	}
	for _, c := range []struct {
		name   string
		paired bool
		shares bool
		extra  int
		level  float64
		a, b   func(*rand.Rand) float64
	}{
		{"pairs", true, false, 0, 0.05, normal(0.5), normal(0)},
		{"pairs, Holm over 24", true, false, 0, 0.05 / 24, normal(1), normal(0)},
		{"shares of pairs", true, true, 0, 0.05, share(0.7), share(0.4)},
		{"two groups", false, false, 0, 0.05, normal(0.7), normal(0)},
		{"two groups, one larger", false, false, 40, 0.05, normal(0.7), normal(0)},
		{"shares", false, true, 0, 0.05, share(0.7), share(0.4)},
		{"shares, one group larger", false, true, 60, 0.05, share(0.7), share(0.4)},
		{"shares near 0, Holm over 24", false, true, 0, 0.05 / 24, share(0.02), share(0.2)},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(8, 8))
			draw := func(n int) pairing {
				p := pairing{paired: c.paired, single: true}
				for range n {
					p.a = append(p.a, c.a(r))
				}
				for range n + c.extra {
					p.b = append(p.b, c.b(r))
				}
				return p
			}
			large := draw(20_000)
			large.b = large.b[:20_000]
			truth := Comparison{Paired: c.paired}
			truth.MeanA.Value, truth.MeanB.Value = statmath.Mean(large.a, confidence).Mean, statmath.Mean(large.b, confidence).Mean
			truth.judge(large, c.shares, world.Anything(), 1)
			truth.extra = c.extra
			n, ok := truth.needs(c.level)
			if !ok {
				t.Fatal("no number is enough")
			}
			trials, room := 150, 0.04 // two standard errors are so much larger
			if os.Getenv("PARLEY_SWEEP") != "" {
				trials, room = 400, 0
			}
			found := 0
			for range trials {
				var one Comparison
				if one.judge(draw(n), c.shares, world.Anything(), 1); one.Test.P < c.level {
					found++
				}
			}
			share := float64(found) / float64(trials)
			t.Logf("%d units: %.2f", n, share)
			if share < 0.7-room || share > 0.92+room {
				t.Errorf("%d units find it in %.2f of all samples, want 0.8", n, share)
			}
		})
	}
	weak := Comparison{Effect: statmath.Quantity{Value: math.NaN()}}
	if n, ok := weak.needs(0.05); ok {
		t.Errorf("%d is enough, want none", n)
	}
}

// TestSameInEveryPair checks that a difference that is the same in every pair is shown by the fewest pairs with which the test
// can show anything: there is no spread to compute with.
func TestSameInEveryPair(t *testing.T) {
	t.Parallel()
	for _, shares := range []bool{false, true} {
		for pairs, more := range map[int]int{3: 3, 5: 1} {
			c := Comparison{Paired: true, perDeal: 1}
			c.judge(pairing{paired: true, single: true, a: slices.Repeat([]float64{1}, pairs), b: make([]float64, pairs)}, shares, world.Anything(), 1)
			c.Adjusted = c.Test.P
			if c.plan(0.05); c.More != more || c.Beyond != 0 {
				t.Errorf("%d pairs, shares %v: %d more, beyond %d; want %d more", pairs, shares, c.More, c.Beyond, more)
			}
		}
	}
}

// TestNeededIsEnough checks that the number of deals needed finds the difference in about four of five runs, with
// ten comparisons and the correction for them.
func TestNeededIsEnough(t *testing.T) {
	t.Parallel()
	draws(t)
	r := rand.New(rand.NewPCG(5, 5))
	names := strings.Split("abcde", "")
	noisy := func(n int) (out []episode) { // only a is better than the others, by 0.8
		for d := range n {
			for _, name := range names {
				gain := 0.0
				if name == "a" {
					gain = 0.8
				}
				out = append(out, episode{name, d, name, "z", gain + r.NormFloat64()/math.Sqrt2, 0})
			}
		}
		return out
	}
	const level = 0.05 / 10 // ten pairs of five
	n, ok := (&Comparison{Paired: true, Effect: statmath.PairedEffect(pairsOf(60, 0.8).a, confidence)}).needs(level)
	if !ok {
		t.Fatal(n)
	}
	found, all := 0, 0
	for range 40 {
		res, err := Compare([]*results.Run{run(t, 1, noisy(n))}, []string{"x"}, CompareConfig{By: byCell, Scores: []string{"points"}})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range res.Comparisons {
			if c.Of == "left" && c.A == "a" {
				all++
				if c.Test.P < level {
					found++
				}
			}
		}
	}
	// They share the luck of a, so 160 count as about 40.
	if share := float64(found) / float64(all); share < 0.6 || share > 0.96 {
		t.Errorf("%d deals find %.2f, want 0.8", n, share)
	}
}

// TestNotOneMoreDeal checks 24 comparisons of eight deals whose differences all have one sign. One more deal is not
// enough: Holm requires P below 0.05/24, which takes ten.
func TestNotOneMoreDeal(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(6, 6))
	var all []episode
	for d := range 8 {
		for cell := range 25 {
			value := 1 + r.Float64()
			if cell == 0 {
				value = 0
			}
			all = append(all, episode{fmt.Sprint("c", cell), d, "a", "z", value, math.NaN()})
		}
	}
	res, err := Compare([]*results.Run{run(t, 1, all)}, []string{"x"}, CompareConfig{By: byCell, Against: "c0"})
	if err != nil || len(res.Comparisons) != 24 {
		t.Fatal(len(res.Comparisons), err)
	}
	for _, c := range res.Comparisons {
		if c.Differs() || c.Least != 10 || c.More < 2 || c.More > 4 {
			t.Fatalf("least %d, more %d: %+v", c.Least, c.More, c)
		}
	}
	if text := fmt.Sprint(res.Document("").Sections[0].Blocks); !strings.Contains(text, "no difference can be shown with fewer than 10 deals") || strings.Contains(text, "about 1 more deal") {
		t.Error(text)
	}
}
