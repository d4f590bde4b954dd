package cli

import (
	"encoding/json"
	"fmt"
	"html/template"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"parley/internal/cli/app"
	"parley/internal/cli/exit"
	"parley/internal/read/report"
	"parley/internal/run/planner"
	"parley/internal/run/results"
	"parley/internal/run/runfile"
	"parley/internal/run/runfile/runfiletest"
	"parley/journal"
	"parley/world"
	"parley/worlds"
)

// randomRun returns a run of a kind with random scores within the declared bounds: shared deals, copies, and
// failed episodes.
func randomRun(t *testing.T, r *rand.Rand, kind world.Kind) []journal.Entry {
	t.Helper()
	params := kind.Defaults()
	raw, err := json.Marshal(params.Pointer())
	if err != nil {
		t.Fatal(err)
	}
	measures := kind.Measures(params)
	begun := &journal.Begun{Version: 1, Run: kind.Name, Kind: kind.Name, KindVersion: kind.Version, Seed: 3, Agents: []world.Agent{{Name: "x", Model: "lab/x"}, {Name: "y", Model: "lab/y"}, {Name: "z", Bot: "z"}}}
	var specs []world.Spec
	var ends []journal.Entry
	deals, plays, openings := 2+r.IntN(12), 1+r.IntN(30), 1+r.IntN(40) // a play with the opening 0 is of bots
	for i := range 20 + r.IntN(40) {
		spec := world.Spec{Kind: kind.Name, Params: raw, Lineup: map[string]string{}, Deal: r.IntN(deals), Cell: fmt.Sprint("cell ", i%2)}
		if kind.Name == "evolve" && deals%2 == 0 { // trials of several evolutions
			spec.Params = fmt.Appendf(nil, `{"episode":{"trial":{"purpose":"test","evolution":%d,"problems":[{"question":"%d","answer":"1"}]}}}`, r.IntN(deals), spec.Deal)
		}
		e := &journal.Ended{Episode: i}
		if r.IntN(3) > 0 {
			play := 1 + r.IntN(plays)
			e.Play, e.Chance = journal.Digest{byte(play % openings), 15: byte(play)}, r.IntN(3) == 0
		}
		for _, m := range measures {
			for _, seat := range append(slices.Clone(m.Seats), "")[:max(1, len(m.Seats))] {
				if seat != "" && spec.Lineup[seat] == "" {
					spec.Lineup[seat] = begun.Agents[r.IntN(3)].Name
				}
				e.Outcome.Scores = append(e.Outcome.Scores, world.Score{Seat: seat, Name: m.Name, Value: within(r, m.Bounds)})
			}
		}
		if r.IntN(10) == 0 {
			e.Outcome = world.Outcome{Failed: "no luck"}
		}
		specs, ends = append(specs, spec), append(ends, e)
	}
	return append([]journal.Entry{begun, &journal.Opened{}, &journal.Staged{Specs: world.List(specs...)}}, ends...)
}

func within(r *rand.Rand, b world.Bounds) float64 {
	switch {
	case b == world.Share():
		return float64(r.IntN(2))
	case b.Any():
		return r.NormFloat64()
	case math.IsInf(b.High, 1):
		return b.Low + float64(r.IntN(9))
	default:
		return b.Low + (b.High-b.Low)*r.Float64()
	}
}

// TestSurfaces checks that run, report, compare, until, a run of scores, agreement with people, the pages of view and exported tables give
// the same mean, interval and number of independent units of a score. Each kind has two runs, or more with PARLEY_SWEEP, which .ci/run
// kills sets.
func TestSurfaces(t *testing.T) {
	t.Parallel()
	sequential(t)
	r := rand.New(rand.NewPCG(16, 2))
	agreed, runs := 0, 2
	if os.Getenv("PARLEY_SWEEP") != "" {
		runs = 5
	}
	for _, kind := range worlds.Standard() {
		if len(kind.Measures(kind.Defaults())) == 0 {
			continue
		}
		for i := range runs {
			entries := randomRun(t, r, kind)
			if begun, ok := entries[0].(*journal.Begun); ok && i == runs-1 { // a world of another program
				begun.Kind, begun.Measures = "other.py:Other", kind.Measures(kind.Defaults())
			}
			file := runfiletest.File(t, entries...)
			store, err := runfile.OpenRead(file)
			if err != nil {
				t.Fatal(err)
			}
			run, err := results.Fold(t.Context(), store, file)
			if err != nil {
				t.Fatal(err)
			}
			run.Know(kind)
			if err := store.Close(); err != nil {
				t.Fatal(err)
			}
			outcomes := results.Outcomes(run.Head, kind)
			var report, compared tables
			report.read(t, parley(t, State{}, "report", file, "--json").want(t, exit.OK).stdout)
			report.same(t, kind.Name+": report", "scores", app.ByAgent(outcomes))
			report.same(t, kind.Name+": report", "scores-by-cell", app.Scores(outcomes))
			if got := parley(t, State{}, "compare", file, "--by", "agent", "--json"); got.code == exit.OK {
				compared.read(t, got.stdout)
				compared.sides(t, kind.Name+": compare", app.ByAgent(outcomes))
			}
			untilAgrees(t, run, app.Scores(outcomes))
			exportAgrees(t, file, kind.Name, outcomes)
			scoreAgrees(t, kind.Name, outcomes)
			if i == 0 {
				pagesAgree(t, file, kind.Name, outcomes)
			}
			agreed += peopleAgree(t, file, kind.Name, outcomes)
		}
	}
	if agreed == 0 {
		t.Error("no score is compared with people")
	}
}

// tables are the tables of report --json and compare --json.
type tables struct {
	Tables []struct {
		Name string
		Rows []map[string]json.RawMessage
	}
}

func (d *tables) read(t *testing.T, text string) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), d); err != nil {
		t.Fatal(err)
	}
}

// same checks that a table has exactly these scores.
func (d *tables) same(t *testing.T, what, name string, want []results.Estimate) {
	t.Helper()
	rows := 0
	for _, table := range d.Tables {
		if table.Name != name {
			continue
		}
		for _, row := range table.Rows {
			rows++
			agent := word(row["agent"])
			if agent == "(all)" {
				agent = ""
			}
			i := slices.IndexFunc(want, func(s results.Estimate) bool {
				return s.Score == word(row["score"]) && s.Agent == agent && s.Cell == word(row["cell"]) && s.Seat == word(row["seat"])
			})
			if i < 0 && word(row["agent"]) == "(all)" {
				rows-- // all agents together, which run does not print
				continue
			}
			if i < 0 {
				t.Errorf("%s: %s has a row that run has not: %s", what, name, row)
				continue
			}
			sameEstimate(t, what+": "+name, row["mean"], want[i])
		}
	}
	if rows != len(want) {
		t.Errorf("%s: %s has %d rows, and run %d", what, name, rows, len(want))
	}
}

// sides checks that the means of both sides of each comparison are these scores.
func (d *tables) sides(t *testing.T, what string, want []results.Estimate) {
	t.Helper()
	seen := 0
	for _, table := range d.Tables {
		for _, row := range table.Rows {
			for _, side := range []string{"a", "b"} {
				for _, s := range want {
					if s.Score == word(row["score"]) && s.Agent == word(row[side]) {
						sameEstimate(t, what, row["mean of "+side], s)
						seen++
					}
				}
			}
		}
	}
	if seen == 0 {
		t.Errorf("%s: no comparison has a score of the run", what)
	}
}

func word(raw json.RawMessage) (s string) {
	_ = json.Unmarshal(raw, &s) // a missing value is empty
	return s
}

func sameEstimate(t *testing.T, what string, raw json.RawMessage, want results.Estimate) {
	t.Helper()
	var got struct {
		Value, Low, High *float64
		N                int
		Method           string
	}
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatalf("%s: %s: %v", what, raw, err)
	}
	for _, pair := range []struct {
		got  *float64
		want float64
	}{{got.Value, want.Mean}, {got.Low, want.Interval.Low}, {got.High, want.Interval.High}} {
		unknown := math.IsInf(pair.want, 0) || math.IsNaN(pair.want)
		if (pair.got == nil) != unknown || pair.got != nil && math.Abs(*pair.got-pair.want) > 1e-12*math.Abs(pair.want) {
			t.Errorf("%s: %s has %s, and run %v", what, want.Score, raw, want)
			return
		}
	}
	if got.N != want.N || got.Method != want.Method {
		t.Errorf("%s: %s has %s, and run %v", what, want.Score, raw, want)
	}
}

// untilAgrees checks that a plan ends at the half-width that run shows, and not at a narrower one.
func untilAgrees(t *testing.T, run *results.Run, want []results.Estimate) {
	t.Helper()
	for _, s := range want {
		half := s.Interval.Half()
		if !(half > 0) || math.IsInf(half, 0) || s.Agent != "" {
			continue // an agent plays only some of a cell's episodes
		}
		var played []world.Played
		run.Each(func(p world.Played) {
			if p.Spec.Cell == s.Cell {
				played = append(played, p)
			}
		})
		for width, ends := range map[float64]bool{half * 1.001: true, half * 0.999: false} {
			plan, err := planner.Until{
				Cells: []world.Spec{played[0].Spec}, Score: s.Score, Bounds: run.Bounds[s.Score], Width: width, Confidence: results.Confidence, Min: max(2, s.Episodes), Max: 10 * len(played), Step: 1,
			}.Plan()
			if err != nil {
				t.Fatal(err)
			}
			plan.Next(nil)
			if next := plan.Next(played); (next.Len() == 0) != ends {
				t.Errorf("until: %s of %v to ±%v: %d more episodes", s.Score, s.Interval, width, next.Len())
			}
		}
	}
}

// exportAgrees checks that what the table of scores says about units gives the estimates that run shows.
func exportAgrees(t *testing.T, file, what string, run *results.Run) {
	t.Helper()
	samples := map[[4]string]*world.Sample{}
	type row struct {
		Episode, Unit, Play            int
		Name, Cell, Agent, Seat, State string
		Value                          float64
	}
	of := func(r row) [4]string { return [4]string{r.Name, r.Cell, r.Agent, r.Seat} }
	for line := range strings.Lines(parley(t, State{}, "export", file, "--table", "scores").want(t, exit.OK).stdout) {
		var r row
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		if r.State != "ended" {
			continue
		}
		s := samples[of(r)]
		if s == nil {
			s = &world.Sample{Bounds: run.Bounds[r.Name]}
			samples[of(r)] = s
		}
		s.Add(world.Unit{Deal: r.Unit, Play: r.Play}, r.Value)
	}
	for _, want := range app.Scores(run) {
		s := samples[[4]string{want.Score, want.Cell, want.Agent, want.Seat}]
		if s == nil {
			t.Errorf("%s: export has no %v", what, want)
			continue
		}
		raw, err := json.Marshal(s.Estimate(results.Confidence))
		if err != nil {
			t.Fatal(err)
		}
		sameEstimate(t, what+": export", raw, want)
	}
}

// scoreAgrees checks that the report of a run that gives every episode the scores that it has shows the estimates of that run.
func scoreAgrees(t *testing.T, what string, run *results.Run) {
	t.Helper()
	measures, err := json.Marshal(map[string]any{"params": map[string]any{results.ScoredParam: results.NewScored(run.Head.Begun.Run, []int{0}, run.Measures())}})
	if err != nil {
		t.Fatal(err)
	}
	begun := *run.Head.Begun
	begun.Run, begun.Kind, begun.Plan, begun.Measures = "scores", "other.py:Scorer", measures, run.Measures()
	var specs []world.Spec
	var ends []journal.Entry
	specOf := run.Scorable()
	run.Each(func(p world.Played) {
		if p.Outcome.Failed != "" {
			return
		}
		spec, err := specOf(world.Spec{Kind: begun.Kind, Lineup: p.Spec.Lineup}, results.Scored{Run: run.Head.Begun.Run}, p.Episode, func(s results.Scored) (json.RawMessage, error) {
			return json.Marshal(map[string]any{results.ScoredParam: s})
		})
		if err != nil {
			t.Fatal(err)
		}
		ends = append(ends, &journal.Ended{Episode: len(specs), Play: journal.Digest{9, byte(p.Episode)}, Outcome: p.Outcome})
		specs = append(specs, spec)
	})
	scored := runfiletest.File(t, append([]journal.Entry{&begun, &journal.Opened{}, &journal.Staged{Specs: world.List(specs...)}}, ends...)...)
	var report tables
	report.read(t, parley(t, State{}, "report", scored, "--json").want(t, exit.OK).stdout)
	report.same(t, what+": scores", "scores", app.ByAgent(run))
	report.same(t, what+": scores", "scores-by-cell", app.Scores(run))
}

// peopleAgree checks that the share of episodes in which a score agrees with people who pass all of them is the mean of the score. It labels
// the run.
func peopleAgree(t *testing.T, file, what string, run *results.Run) (seen int) {
	t.Helper()
	rows := "episode,verdict\n"
	run.Each(func(p world.Played) { rows += fmt.Sprintf("%d,pass\n", p.Episode) })
	parley(t, State{}, "score", file, "--labels", write(t, "people.csv", rows)).want(t, exit.OK)
	var report tables
	report.read(t, parley(t, State{}, "report", file, "--json").want(t, exit.OK).stdout)
	for _, s := range run.Scores(func(g results.Group) results.Group { return results.Group{Score: g.Score, Seat: g.Seat} }) {
		q := s.Estimate()
		for _, table := range report.Tables {
			for _, row := range table.Rows {
				if table.Name == "agreement" && run.Bounds[s.Score] == world.Share() && word(row["score"]) == s.Score && word(row["seat"]) == s.Seat {
					sameEstimate(t, what+": agreement", row["agree"], results.Estimate{Group: s.Group, N: q.N, Mean: q.Value, Interval: q.Interval, Method: q.Method})
					seen++
				}
			}
		}
	}
	return seen
}

// pagesAgree checks that the pages of a run have its estimates.
func pagesAgree(t *testing.T, file, what string, run *results.Run) {
	t.Helper()
	site, pages := filepath.Join(t.TempDir(), "site"), ""
	parley(t, State{}, "view", filepath.Dir(file), "--export", site).want(t, exit.OK)
	err := filepath.WalkDir(site, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".html" {
			return err
		}
		b, err := os.ReadFile(path)
		pages += string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range run.Scores(func(g results.Group) results.Group { return results.Group{Score: g.Score, Agent: g.Agent} }) {
		if text := template.HTMLEscapeString(report.Interval(s.Estimate())); !strings.Contains(pages, text) {
			t.Errorf("%s: no page has %s of %s: %s", what, s.Score, s.Agent, text)
		}
	}
}

// TestFactorsLeaveOut checks that episodes without a level of every factor are named.
func TestFactorsLeaveOut(t *testing.T) {
	t.Parallel()
	file := duel(t, "x.parley", "agents.small={model: sim/small, tags: {size: s}}")
	parley(t, State{}, "report", file, "--by", "size").want(t, exit.OK).wantOut(t, "Left out because they do not have a level of every factor", "scores of large")
}

// TestStoppedSurfaces checks that the summary of a run, report and compare count the same episodes of a stopped run, that they say
// what does not count, and that --count-all counts it with a caution.
func TestStoppedSurfaces(t *testing.T) {
	t.Parallel()
	sequential(t)
	var specs []world.Spec
	var ends []journal.Entry
	for i := range 40 {
		agent := []string{"a", "b"}[i%2]
		specs = append(specs, world.Spec{Kind: "other.py:Other", Lineup: map[string]string{"s": agent}, Deal: i / 2})
		if i != 20 { // of deal 10
			ends = append(ends, &journal.Ended{Episode: i, Outcome: world.Outcome{Scores: []world.Score{{Seat: "s", Name: "points", Value: float64(i % 7)}}}})
		}
	}
	file := runfiletest.File(t, append([]journal.Entry{
		&journal.Begun{Version: journal.Version, Run: "r", Kind: "other.py:Other", Plan: json.RawMessage(`{}`), Agents: []world.Agent{{Name: "a", Model: "sim/a"}, {Name: "b", Model: "sim/b"}}},
		&journal.Opened{}, &journal.Staged{Specs: world.List(specs...)},
	}, append(ends, &journal.Closed{State: journal.Stopped})...)...)
	const note, biased = "39 of 40 episodes have ended. 19 of these do not count", "short episodes ended first"
	for _, verb := range []string{"report", "compare"} {
		got := parley(t, State{}, verb, file).want(t, exit.OK).wantOut(t, note)
		if strings.Contains(got.stdout, biased) {
			t.Errorf("%s: %s", verb, got.stdout)
		}
		parley(t, State{}, verb, file, "--count-all").want(t, exit.OK).wantOut(t, "All of these count", biased)
	}
	store, err := runfile.OpenRead(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	head, err := store.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var d tables
	d.read(t, parley(t, State{}, "report", file, "--json").want(t, exit.OK).stdout)
	want := app.ByAgent(results.Outcomes(head, world.Kind{}))
	d.same(t, "report", "scores", want)
	if want[0].Episodes != 10 {
		t.Errorf("%+v", want)
	}
}
