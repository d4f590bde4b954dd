package report

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"parley/internal/kit/statmath"
	"parley/internal/run/results"
	"parley/journal"
	"parley/world"
	"parley/world/worldtest"
)

// setup is a way to make runs with a known truth. A trial returns an interval as tables show
// it, and the truth.
type setup struct {
	name, size string
	trial      func(r *rand.Rand) (statmath.Quantity, float64)
	// why explains why the interval holds the truth in more than 97% of trials, or in less than 93%.
	why       string
	low, high float64 // the expected range then, in percent
}

// drawn is an episode of a setup.
type drawn struct {
	deal, play int
	agent      string
	value      float64
}

// scored returns a run of episodes, with a score that has these bounds.
func scored(bounds world.Bounds, seed uint64, all ...drawn) *results.Run {
	kind := world.Define(worldtest.Simple[struct{}]{Kind: world.About{Name: "drawn"}, Scores: []world.Measure{{Name: "x", Seats: []string{"s"}, Bounds: bounds}}})
	head := &journal.Head{
		Begun: &journal.Begun{Run: fmt.Sprint(seed), Kind: "drawn", Seed: seed, Agents: []world.Agent{{Name: "a", Model: "lab/a"}, {Name: "b", Model: "lab/b"}}},
	}
	var specs []world.Spec
	for i, d := range all {
		if d.agent == "" {
			d.agent = "a"
		}
		specs = append(specs, world.Spec{Kind: "drawn", Params: json.RawMessage(`{}`), Lineup: map[string]string{"s": d.agent}, Deal: d.deal})
		e := journal.Ended{Episode: i, Outcome: world.Outcome{Scores: []world.Score{{Seat: "s", Name: "x", Value: d.value}}}}
		if d.play > 0 {
			binary.PutVarint(e.Play[:], int64(d.play))
		}
		head.Ended.Put(0, &e)
	}
	head.Stages = []journal.Staged{{Specs: world.List(specs...)}}
	return results.Outcomes(head, kind)
}

// estimated returns the mean of the score as run and report show it.
func estimated(r *results.Run) statmath.Quantity {
	return r.Scores(func(g results.Group) results.Group { return results.Group{Score: g.Score} })[0].Estimate()
}

// testTrial is what an episode of a run of several evolutions is about.
type testTrial struct {
	Evolution int `json:"evolution"`
	Problem   int `json:"problem"`
}

type parted struct{ worldtest.Simple[testTrial] }

func (parted) TaskName(p *testTrial) world.Task {
	return world.Task{Name: fmt.Sprint(p.Problem), Whole: true, Of: 1 + p.Evolution}
}

// evolved returns a run of several evolutions, whose prompts solve each test problem or not. Problems are the same in all, and evolutions
// differ in how good their prompts are.
func evolved(r *rand.Rand, seed uint64, evolutions, problems int) *results.Run {
	kind := world.Define(parted{worldtest.Simple[testTrial]{Kind: world.About{Name: "evolved"}, Scores: []world.Measure{{Name: "x", Seats: []string{"s"}, Bounds: world.Share()}}}})
	head := &journal.Head{Begun: &journal.Begun{Run: fmt.Sprint(seed), Kind: "evolved", KindVersion: kind.Version, Seed: seed, Agents: []world.Agent{{Name: "a", Model: "lab/a"}}}}
	var specs []world.Spec
	for e := range evolutions {
		luck := r.NormFloat64()
		for p := range problems {
			specs = append(specs, world.Spec{Kind: "evolved", Params: fmt.Appendf(nil, `{"evolution":%d,"problem":%d}`, e, p), Lineup: map[string]string{"s": "a"}, Deal: p})
			head.Ended.Put(0, &journal.Ended{Episode: len(specs) - 1, Outcome: world.Outcome{Scores: []world.Score{{Seat: "s", Name: "x", Value: zeroOne(r.Float64() < logistic(luck))}}}})
		}
	}
	head.Stages = []journal.Staged{{Specs: world.List(specs...)}}
	return results.Outcomes(head, kind)
}

// rescored returns the run of a scorer that gives every episode of a run the score that it has.
func rescored(of *results.Run) *results.Run {
	kind := world.Define(worldtest.Simple[struct{}]{Kind: world.About{Name: "rubric"}, Scores: []world.Measure{{Name: "x", Seats: []string{"s"}, Bounds: of.Bounds["x"]}}})
	head := &journal.Head{Begun: &journal.Begun{Run: "scores", Kind: "rubric", Plan: json.RawMessage(`{"params":{"scored":{"run":"of"}}}`), Agents: of.Head.Begun.Agents}}
	specOf, specs := of.Scorable(), []world.Spec(nil)
	of.Each(func(p world.Played) {
		spec, err := specOf(world.Spec{Kind: "rubric", Lineup: p.Spec.Lineup}, results.Scored{Run: "of"}, p.Episode, func(s results.Scored) (json.RawMessage, error) {
			return json.Marshal(map[string]any{results.ScoredParam: s})
		})
		if err != nil {
			panic(err)
		}
		specs = append(specs, spec)
		head.Ended.Put(0, &journal.Ended{Episode: p.Episode, Play: journal.Digest{1, byte(p.Episode), byte(p.Episode >> 8)}, Outcome: p.Outcome})
	})
	head.Stages = []journal.Staged{{Specs: world.List(specs...)}}
	return results.Outcomes(head, kind)
}

// difference returns the difference of agents a and b as compare shows it.
func difference(r *results.Run) statmath.Quantity {
	found, _ := collect([]*results.Run{r}, []string{"x"}, CompareConfig{By: ByAgent}, nil) // every run has agents
	return matches(found, "")[0].compare(r.Bounds["x"], 1).Difference
}

func zeroOne(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// alone estimates the mean of episodes with separate deals.
func alone(bounds world.Bounds, n int, one func(r *rand.Rand) float64, truth float64) func(*rand.Rand) (statmath.Quantity, float64) {
	return func(r *rand.Rand) (statmath.Quantity, float64) {
		var all []drawn
		for i := range n {
			all = append(all, drawn{deal: i, value: one(r)})
		}
		return estimated(scored(bounds, 1, all...)), truth
	}
}

// clustered estimates the mean of several episodes of each deal, which share their luck.
func clustered(bounds world.Bounds, deals, each int, one func(r *rand.Rand, luck float64) float64, truth float64) func(*rand.Rand) (statmath.Quantity, float64) {
	return func(r *rand.Rand) (statmath.Quantity, float64) {
		var all []drawn
		for d := range deals {
			luck := r.NormFloat64()
			for range each {
				all = append(all, drawn{deal: d, value: one(r, luck)})
			}
		}
		return estimated(scored(bounds, 1, all...)), truth
	}
}

// stopped plays a plan of so many deals, some at once, in order, and stops it when a number of episodes has ended. An episode
// that scores 1 is short. It returns nil if no deal counts.
func stopped(r *rand.Rand, deals, atOnce, stop int, share float64) *results.Run {
	all, ends := make([]drawn, deals), make([]float64, deals)
	free := make([]float64, atOnce) // when each place is free again
	for i := range all {
		place := slices.Index(free, slices.Min(free))
		took := 10 * r.ExpFloat64()
		if all[i] = (drawn{deal: i}); r.Float64() < share {
			all[i].value, took = 1, r.ExpFloat64()
		}
		free[place] += took
		ends[i] = free[place]
	}
	at := slices.Sorted(slices.Values(ends))[stop-1]
	run := scored(world.Share(), 1, all...)
	for i, end := range ends {
		if end > at {
			run.Head.Ended.Delete(i)
		}
	}
	if ends[0] > at {
		return nil
	}
	return results.Outcomes(run.Head, run.Kind())
}

// stoppedShare estimates the mean of stopped runs in which something counts.
func stoppedShare(deals, atOnce, stop int) func(*rand.Rand) (statmath.Quantity, float64) {
	return func(r *rand.Rand) (statmath.Quantity, float64) {
		for {
			if run := stopped(r, deals, atOnce, stop, 0.54); run != nil {
				return estimated(run), 0.54
			}
		}
	}
}

// TestStopped checks that the mean of a stopped run is not that of its short episodes, unless everything counts, and that this
// is said.
func TestStopped(t *testing.T) {
	t.Parallel()
	run := stopped(rand.New(rand.NewPCG(16, 8)), 200, 50, 52, 0.54)
	if q := estimated(run); !q.Holds(0.54) || !strings.Contains(run.CountedNote(), "52 of 200 episodes have ended") {
		t.Errorf("%v: %s", q, run.CountedNote())
	}
	run.Everything = true
	if q := estimated(run); q.Holds(0.54) || q.N != 52 || !run.Biased() {
		t.Errorf("everything: %v, biased: %v", q, run.Biased())
	}
	d, err := Build(t.Context(), []Source{{Run: run, Journal: &journal.Memory{}, Kind: run.Kind()}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range d.Tables() {
		if table.Name == "scores" && (table.Columns[len(table.Columns)-1].Name != "caution" || table.Rows[0][len(table.Columns)-1].Text != results.BiasedNote) {
			t.Errorf("%+v", table)
		}
	}
}

// versus estimates the difference of a and b on the same deals, or on separate deals.
func versus(bounds world.Bounds, deals, each int, same bool, one func(r *rand.Rand, luck, gain float64) float64, truth float64) func(*rand.Rand) (statmath.Quantity, float64) {
	return func(r *rand.Rand) (statmath.Quantity, float64) {
		var all []drawn
		for d := range deals {
			luck, other := r.NormFloat64(), r.NormFloat64()
			if same {
				other = luck
			}
			for range each {
				b := d
				if !same {
					b += deals
				}
				all = append(all, drawn{deal: d, agent: "a", value: one(r, luck, 1)}, drawn{deal: b, agent: "b", value: one(r, other, 0)})
			}
		}
		return difference(scored(bounds, 1, all...)), truth
	}
}

func logistic(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// means95 returns designs for the mean of a score.
func means95() []setup {
	anything := world.Bounds{}
	between := func(r *rand.Rand) float64 { return 0.05 + 0.9*r.Float64() }
	return []setup{
		{name: "share", size: "20 episodes", trial: func(r *rand.Rand) (statmath.Quantity, float64) {
			p := between(r)
			return alone(world.Share(), 20, func(r *rand.Rand) float64 { return zeroOne(r.Float64() < p) }, p)(r)
		}},
		{name: "share", size: "200 episodes", trial: func(r *rand.Rand) (statmath.Quantity, float64) {
			p := between(r)
			return alone(world.Share(), 200, func(r *rand.Rand) float64 { return zeroOne(r.Float64() < p) }, p)(r)
		}},
		{name: "share of 0.02", size: "30 episodes", trial: alone(world.Share(), 30, func(r *rand.Rand) float64 { return zeroOne(r.Float64() < 0.02) }, 0.02),
			why: "so few episodes have only a few possible shares, so intervals jump", low: 97, high: 99.5},
		{name: "share of 1", size: "20 episodes", trial: alone(world.Share(), 20, func(*rand.Rand) float64 { return 1 }, 1),
			why: "at the bound every sample is the same, and its interval ends there", low: 100, high: 100},
		{name: "share, stopped when 100 of 200 had ended", size: "20 at once", trial: stoppedShare(200, 20, 100)},
		{name: "share, stopped when 52 of 200 had ended", size: "50 at once", trial: stoppedShare(200, 50, 52)},
		{name: "score from 0 to 34, skewed", size: "16 episodes", trial: alone(world.Bounds{Low: 0, High: 34}, 16, func(r *rand.Rand) float64 { return 34 * math.Pow(r.Float64(), 4) }, 34.0/5)},
		{name: "score from 0 to 5, far from both", size: "8 episodes", trial: alone(world.Bounds{Low: 0, High: 5}, 8, func(r *rand.Rand) float64 { return 3 + 2*r.Float64() }, 4)},
		{name: "whole numbers from 0 to 10", size: "12 episodes", trial: alone(world.Bounds{Low: 0, High: 10}, 12, func(r *rand.Rand) float64 { return float64(r.IntN(11)) }, 5)},
		{name: "score without bounds", size: "8 episodes", trial: alone(anything, 8, func(r *rand.Rand) float64 { return 3 + 2*r.NormFloat64() }, 3)},
		{name: "count, skewed", size: "40 episodes", trial: alone(world.AtLeast0(), 40, func(r *rand.Rand) float64 { return r.ExpFloat64() }, 1),
			why: "Student's interval of a skewed count is a little narrow", low: 91, high: 95},
		{name: "score, 60 episodes a deal", size: "8 deals", trial: clustered(anything, 8, 60, func(r *rand.Rand, luck float64) float64 { return luck + r.NormFloat64() }, 0)},
		{name: "score, few deals", size: "4 deals of 10", trial: clustered(anything, 4, 10, func(r *rand.Rand, luck float64) float64 { return luck + r.NormFloat64() }, 0)},
		{name: "share, 5 episodes a deal", size: "30 deals", trial: clustered(world.Share(), 30, 5, func(r *rand.Rand, luck float64) float64 {
			p := 0.05
			if luck > 0 {
				p = 0.35
			}
			return zeroOne(r.Float64() < p)
		}, 0.2)},
		{name: "score, copies of one play", size: "40 episodes, 10 plays", trial: func(r *rand.Rand) (statmath.Quantity, float64) {
			plays := make([]float64, 10)
			for i := range plays {
				plays[i] = r.NormFloat64()
			}
			var all []drawn
			for i := range 40 {
				all = append(all, drawn{deal: i, play: 1 + i%10, value: plays[i%10]})
			}
			return estimated(scored(anything, 1, all...)), 0
		}},
	}
}

// parts95 returns designs in which what is independent is not the episode: scores in runs of their own, and several evolutions.
func parts95() []setup {
	return []setup{
		{name: "scores of a scorer, 36 episodes a deal", size: "5 deals", trial: func(r *rand.Rand) (statmath.Quantity, float64) {
			var all []drawn
			for d := range 5 {
				luck := r.NormFloat64()
				for range 36 {
					all = append(all, drawn{deal: d, value: luck + r.NormFloat64()})
				}
			}
			return estimated(rescored(scored(world.Bounds{}, 1, all...))), 0
		}},
		{name: "share of test problems, several evolutions", size: "8 evolutions, 12 problems", trial: func(r *rand.Rand) (statmath.Quantity, float64) {
			return estimated(evolved(r, 1, 8, 12)), 0.5
		}},
		{name: "difference of evolutions, the same problems", size: "6 evolutions each, 12 problems", trial: func(r *rand.Rand) (statmath.Quantity, float64) {
			a, b := evolved(r, 1, 6, 12), evolved(r, 2, 6, 12)
			found, _ := collect([]*results.Run{a, b}, []string{"a", "b"}, CompareConfig{By: ByFile}, nil)
			return matches(found, "")[0].compare(a.Bounds["x"], 1).Difference, 0
		}},
	}
}

// differences95 returns designs for differences of two agents.
func differences95() []setup {
	anything := world.Bounds{}
	normal := func(r *rand.Rand, luck, gain float64) float64 { return luck + gain + r.NormFloat64() }
	return []setup{
		{name: "difference, the same deals", size: "12 deals", trial: versus(anything, 12, 1, true, normal, 1)},
		{name: "difference, the same deals", size: "4 deals", trial: versus(anything, 4, 1, true, normal, 1)},
		{name: "difference, the same deals, 5 episodes each", size: "10 deals", trial: versus(anything, 10, 5, true, normal, 1)},
		{name: "difference, separate deals", size: "10 deals each", trial: versus(anything, 10, 1, false, normal, 1)},
		{name: "difference, separate deals, 5 episodes each", size: "10 deals each", trial: versus(anything, 10, 5, false, normal, 1)},
		{name: "difference of shares, the same deals", size: "80 deals", trial: versus(world.Share(), 80, 1, true, func(r *rand.Rand, luck, _ float64) float64 { return zeroOne(r.Float64() < logistic(luck)) }, 0)},
		{name: "difference of shares, separate deals", size: "60 deals each", trial: versus(world.Share(), 60, 1, false, func(r *rand.Rand, _, gain float64) float64 { return zeroOne(r.Float64() < 0.3+0.3*gain) }, 0.3)},
		{name: "Elo rating of one of three agents", size: "3 agents, 15 meetings each", trial: func(r *rand.Rand) (statmath.Quantity, float64) {
			var games []statmath.Game
			strength := map[string]float64{"a": 0.8, "b": 0, "c": 0}
			for range 15 {
				for _, g := range []statmath.Game{{A: "a", B: "b"}, {A: "b", B: "c"}, {A: "c", B: "a"}} {
					g.Score = zeroOne(r.Float64() < logistic(strength[g.A]-strength[g.B]))
					games = append(games, g)
				}
			}
			table, err := statmath.Rate(games, 0.95)
			if err != nil {
				panic(err)
			}
			i := slices.IndexFunc(table.Standings, func(s statmath.Standing) bool { return s.Player == "a" })
			return table.Standings[i].Rating, 1500 + (0.8-0.8/3)*400/math.Ln10
		}},
	}
}

// draws skips a test in short runs: it only computes, and much.
func draws(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("draws many runs")
	}
}

// TestCoverage draws runs with a known truth: the 95% intervals that tables show must hold
// it in 93 to 97% of them, or docs/reference/statistics.md says why not. With PARLEY_TRIALS=2000, as .ci/run statistics sets it, the
// test is exact; with the usual few trials of each design, it leaves room for chance. This test writes its table:
//
//	PARLEY_TRIALS=2000 PARLEY_WRITE_GOLDEN=1 go test ./internal/read/report -run TestCoverage
func TestCoverage(t *testing.T) {
	t.Parallel()
	draws(t)
	trials, room := 100, 6.5 // percent: three standard errors
	if text := os.Getenv("PARLEY_TRIALS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 2000 {
			t.Fatalf("PARLEY_TRIALS=%s: want at least 2000: %v", text, err)
		}
		trials, room = n, 0
	}
	page := filepath.Join("..", "..", "..", "docs", "reference", "statistics.md")
	all := slices.Concat(means95(), parts95(), differences95())
	held := make([]float64, len(all))
	t.Run("designs", func(t *testing.T) {
		for i, d := range all {
			t.Run(d.name+", "+d.size, func(t *testing.T) {
				t.Parallel()
				r := rand.New(rand.NewPCG(16, 7))
				yes := 0
				for range trials {
					if q, truth := d.trial(r); q.Holds(truth) {
						yes++
					}
				}
				held[i] = 100 * float64(yes) / float64(trials)
				low, high := 93.0, 97.0
				if d.why != "" {
					low, high = d.low, d.high
				}
				if held[i] < low-room || held[i] > high+room {
					t.Errorf("95%% intervals hold the truth in %.1f%%, want %g to %g", held[i], low, high)
				}
			})
		}
	})
	rows := regexp.MustCompile(`(?m)^\| design.*\n(\|.*\n)+`)
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv("PARLEY_WRITE_GOLDEN") != "" {
		if err := os.WriteFile(page, rows.ReplaceAll(text, []byte(coverageTable(all, held))), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	for i, d := range all {
		row := regexp.MustCompile(`(?m)^\| ` + regexp.QuoteMeta(d.name) + ` \| ` + regexp.QuoteMeta(d.size) + ` \| ([0-9.]+)% \|`).FindSubmatch(text)
		if row == nil {
			t.Errorf("%s has no row for %s, %s", page, d.name, d.size)
			continue
		}
		// Processors round differently, which can change a few trials.
		if documented, err := strconv.ParseFloat(string(row[1]), 64); err != nil || math.Abs(documented-held[i]) > 0.5+room {
			t.Errorf("%s says %s%% for %s, %s; it is %.1f%%", page, row[1], d.name, d.size, held[i])
		}
	}
}

func coverageTable(all []setup, held []float64) string {
	var b strings.Builder
	b.WriteString("| design | size | holds the truth | if not 93 to 97%: why |\n|---|---|---|---|\n")
	for i, d := range all {
		fmt.Fprintf(&b, "| %s | %s | %.1f%% | %s |\n", d.name, d.size, held[i], d.why)
	}
	return b.String()
}
