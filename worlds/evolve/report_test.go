package evolve

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"parley/world"
	"parley/world/exhibit"
)

// exhibits returns the exhibits of a run.
func exhibits(stages [][]world.Played) map[string]exhibit.Exhibit {
	x := definition{}.Exhibitor()
	for _, stage := range stages {
		for _, p := range stage {
			x.Add(p)
		}
	}
	all := map[string]exhibit.Exhibit{}
	for _, e := range x.Exhibits() {
		all[e.Name] = e
	}
	return all
}

// namesOf returns the names of the exhibits of a run, in order.
func namesOf(stages [][]world.Played) (names []string) {
	x := definition{}.Exhibitor()
	for _, p := range slices.Concat(stages...) {
		x.Add(p)
	}
	for _, e := range x.Exhibits() {
		names = append(names, e.Name)
	}
	return names
}

// TestSentence checks what is said about each kind of result.
func TestSentence(t *testing.T) {
	t.Parallel()
	winner, p := &Prompt{Text: "Think."}, 0.02
	test := []Tested{{Name: "winner", Accuracy: Estimate{0.5, 0.4, 0.6, 100}}, {Name: "seed 1", Accuracy: Estimate{0.3, 0.2, 0.4, 100}}}
	points := &Measured{Score: world.Measure{Name: "points"}, Lower: true}
	for _, c := range []struct {
		v    Verdict
		want string
	}{
		{Verdict{}, "No prompt could be tried"},
		{Verdict{Winner: winner, Test: make([]Tested, 1)}, "no problem of it has an answer"},
		{Verdict{Winner: winner, Test: []Tested{{Name: "winner = seed 1", Accuracy: test[0].Accuracy}}}, "0.50 [0.40, 0.60] of 100 problems that evolution never saw. It was there from the start"},
		{Verdict{Winner: winner, Test: test, Best: "winner"}, "No baseline can be compared"},
		{Verdict{Winner: winner, Test: test, Best: "seed 1", Gain: &Estimate{0.2, 0.1, 0.3, 100}, P: &p, Method: "mcnemar"}, "(seed 1) 0.30 [0.20, 0.40]. Problem by problem, the gain is 0.20 [0.10, 0.30], p = 0.020 (mcnemar): the best prompt is better."},
		{Verdict{Winner: winner, Test: test, Best: "seed 1", Gain: &Estimate{-0.2, -0.3, -0.1, 100}}, "[-0.30, -0.10]: the best prompt is worse."},
		{Verdict{Winner: winner, Test: test, Best: "seed 1", Gain: &Estimate{0.1, -0.1, 0.3, 100}, Measure: points}, "has points 0.50 [0.40, 0.60], and the best baseline (seed 1) 0.30 [0.20, 0.40]. Problem by problem, the gain is 0.10 [-0.10, 0.30]: that may be chance."},
	} {
		if got := c.v.sentence(); !strings.Contains(got, c.want) {
			t.Errorf("got %q\nwant %q", got, c.want)
		}
	}
	e := &evolution{verdict: &Verdict{Measure: points, Generations: []Generation{{Accuracy: -3}}, Lineage: []Ancestor{{Accuracy: -3}}}}
	if g := e.generationTable(); g.Columns[4] != "points of the best" || g.Rows[0][4] != 3.0 {
		t.Errorf("%v", g)
	}
	if text := lineageText(e.verdict); !strings.Contains(text, "points 3.000") || strings.Contains(text, "accuracy") {
		t.Error(text)
	}
}

// TestCurvesOfAMeasure: readers see the measure also where less is better, and the best so far is that of some prompt: never 0 by itself.
func TestCurvesOfAMeasure(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		lower  bool
		scores []float64 // of two prompts of the first generation, and of one of the third
		want   string
		line   string
	}{
		{true, []float64{4, 6, 3}, "best so far 4 4 3, mean of the new 5 3, highest of the new 6 3, median 5 3, lowest of the new 4 3", "best 3.00 [|, mean 3.00,"},
		{true, []float64{0, 6, 3}, "best so far 0 0 0, mean of the new 3 3, highest of the new 6 3, median 3 3, lowest of the new 0 3", "best 0.00 [|, mean 3.00,"},
		{false, []float64{-4, -6, -3}, "best so far -4 -4 -3, mean of the new -5 -3, highest of the new -4 -3, median -5 -3, lowest of the new -6 -3", "best -3.00 [|, mean -3.00,"},
	} {
		s := &status{generations: 2}
		for i, score := range c.scores {
			remark := fmt.Sprintf(`{"id":%d,"generation":%d,"purpose":"race","measure":"points","lower":%t}`, i, i/2*2, c.lower)
			s.report.Add(world.Played{Spec: world.Spec{Remark: json.RawMessage(remark)}, Outcome: world.Outcome{Scores: []world.Score{{Name: "points", Value: score}}}})
		}
		var got []string
		for _, x := range s.Exhibits() {
			if curves, ok := x.Show.(exhibit.Curves); ok && curves.Y == "points" {
				for _, one := range curves.Curves {
					text := one.Name
					for _, at := range one.Points {
						text += fmt.Sprint(" ", at.Sample.Estimate(confidence).Value)
					}
					got = append(got, text)
				}
			}
		}
		if strings.Join(got, ", ") != c.want {
			t.Errorf("got %s\nwant %s", strings.Join(got, ", "), c.want)
		}
		best, mean, _ := strings.Cut(c.line, "|")
		if line := strings.Join(s.Line(), ", "); !strings.Contains(line, best) || !strings.Contains(line, mean) {
			t.Errorf("got %s\nwant %s", line, c.line)
		}
	}
}

func TestExhibits(t *testing.T) {
	t.Parallel()
	l := (&testEvolution{t: t, seed: 5}).run(joinParams(smallParams, modelOperators))
	v := l.verdict
	all := exhibits(l.stages)
	curves, _ := all["evolve-fitness"].Show.(exhibit.Curves)
	if len(curves.Curves) != 2 || len(curves.Curves[0].Points) != len(v.Generations) {
		t.Fatalf("%+v", curves)
	}
	last := curves.Curves[0].Points[len(v.Generations)-1].Sample.Estimate(0.95).Value
	if best := v.Generations[len(v.Generations)-1].Best; last != best {
		t.Errorf("the best so far is drawn at %v, and is %v", last, best)
	}
	tests, _ := all["evolve-test"].Show.(exhibit.Estimates)
	for i, row := range tests.Rows {
		if got := row.Sample.Estimate(0.95).Value; row.Labels[1] != v.Test[i].Name || got != v.Test[i].Accuracy.Value {
			t.Errorf("%v: %v, and the verdict says %+v", row.Labels, got, v.Test[i])
		}
	}
	bars, _ := all["evolve-calls"].Show.(exhibit.Bars)
	for i, g := range v.Generations {
		if int(bars.Series[0].Values[i]) != g.Calls {
			t.Errorf("generation %d: %v calls are drawn, %d were made", i, bars.Series[0].Values[i], g.Calls)
		}
	}
	order := []string{"evolve-gain", "evolve-test", "evolve-verdict", "evolve-winner", "evolve-baseline"}
	if got := namesOf(l.stages); !slices.Equal(got[:len(order)], order) {
		t.Errorf("the page begins with %q, want %q", got, order)
	}
	gain, _ := all["evolve-gain"].Show.(exhibit.Text)
	baseline, _ := all["evolve-baseline"].Show.(exhibit.Text)
	if want := fmt.Sprintf("solves %s of %d problems that evolution never saw, and the best baseline (%s) %s. Problem by problem, the gain is %s, p ", v.Test[0].Accuracy, v.Test[0].Accuracy.N, v.Best, v.baseline().Accuracy, v.Gain); !strings.Contains(gain.Body, want) {
		t.Errorf("got %q\nwant %q", gain.Body, want)
	}
	if baseline.Body != v.baseline().Text {
		t.Errorf("the baseline is %q", baseline.Body)
	}
	winner, _ := all["evolve-winner"].Show.(exhibit.Text)
	lineage, _ := all["evolve-lineage"].Show.(exhibit.Text)
	if winner.Body != v.Winner.Text || !strings.Contains(lineage.Body, "by seed") || len(tests.Rows) != len(v.Test) {
		t.Errorf("%q, %q", winner.Body, lineage.Body)
	}
	for _, name := range []string{"evolve-diversity", "evolve-spread", "evolve-verdict", "evolve-operators", "evolve-generations"} {
		if all[name].Show == nil {
			t.Errorf("%s is missing", name)
		}
	}
	if all["evolve-cost"].Show != nil {
		t.Error("a cost that nobody knows is drawn")
	}
	if early := exhibits(l.stages[:2]); early["evolve-fitness"].Show == nil || early["evolve-verdict"].Show != nil {
		t.Errorf("while it is played: %v", early)
	}
}

// TestExhibitsOfAnything checks that hostile run files cause no panic.
func TestExhibitsOfAnything(t *testing.T) {
	t.Parallel()
	if all := exhibits(nil); len(all) != 0 {
		t.Errorf("%v", all)
	}
	l := (&testEvolution{t: t, seed: 5}).run(joinParams(smallParams))
	for _, stage := range l.stages {
		for i := range stage {
			raw, _ := stage[i].Outcome.Data.(json.RawMessage)
			for _, swap := range [][2]string{{`"generation":1`, `"generation":-7`}, {`"id":3`, `"id":-1`}, {`"best_baseline"`, `"x"`}, {`"asked":1`, `"asked":-1`}} {
				raw = json.RawMessage(strings.ReplaceAll(string(raw), swap[0], swap[1]))
			}
			stage[i].Outcome.Data = raw
		}
	}
	exhibits(l.stages)
	for _, data := range []any{nil, 3, json.RawMessage(`null`), json.RawMessage(`[]`), json.RawMessage(`{"stopped":"x"}`), json.RawMessage(`{"purpose":"race","generation":9999999999,"results":[{}]}`), json.RawMessage(`{"purpose":"test","results":[{"asked":-1}]}`)} {
		exhibits([][]world.Played{{{Outcome: world.Outcome{Data: data}}}})
	}
}

// TestSeveralEvolutions checks that evolutions with the same params are one curve, that each has a row in the tables, and
// that the final test combines many of them.
func TestSeveralEvolutions(t *testing.T) {
	t.Parallel()
	var stages [][]world.Played
	for deal := range 3 {
		for _, cell := range []string{"a", "b"} {
			plan, err := definition{}.Plan(paramsOf(t, joinParams(smallParams)), world.Spec{Cell: cell, Deal: deal}, 1)
			if err != nil {
				t.Fatal(err)
			}
			l := &testEvolution{t: t, seed: uint64(deal)}
			l.answer = l.sim
			l.follow(plan)
			stages = slices.Concat(stages, l.stages)
		}
	}
	all := exhibits(stages)
	curves, _ := all["evolve-fitness"].Show.(exhibit.Curves)
	verdicts, _ := all["evolve-verdict"].Show.(exhibit.Grid)
	if len(curves.Curves) != 4 || curves.Curves[0].Points[0].Sample.Episodes() != 3 || len(verdicts.Rows) != 6 || verdicts.Rows[2][0] != "a #2" {
		t.Errorf("%d curves, %v", len(curves.Curves), verdicts.Rows)
	}
	if gain, _ := all["evolve-gain"].Show.(exhibit.Estimates); len(gain.Rows) != 2 || gain.Rows[0].Labels[0] != "a" || gain.Rows[0].Sample.Episodes() != 3 {
		t.Errorf("%+v", gain)
	}
	tests, _ := all["evolve-test"].Show.(exhibit.Estimates)
	if first := tests.Rows[0]; !slices.Equal(first.Labels, []string{"a", "winner"}) || first.Sample.Episodes() != 3 || tests.Rows[len(tests.Rows)-1].Labels[0] != "b" {
		t.Errorf("%+v", tests.Rows)
	}
}

// TestExhibitsOfSpending checks tokens and cost by generation, and that calls and savings add up to the calls of trying
// every prompt on every problem.
func TestExhibitsOfSpending(t *testing.T) {
	t.Parallel()
	l := (&testEvolution{t: t, seed: 5}).run(joinParams(smallParams, `"target_fitness": 0`))
	cost := map[int]float64{}
	for _, stage := range l.stages {
		for i := range stage {
			stage[i].Took = world.Took{Input: 10, Output: 5, Cost: float64(i)}
			if rec, _ := readData[trialRecord](stage[i].Outcome); rec.Purpose == purposeRace {
				cost[rec.Generation] += float64(i)
			}
		}
	}
	all := exhibits(l.stages)
	bars, _ := all["evolve-cost"].Show.(exhibit.Bars)
	table, _ := all["evolve-generations"].Show.(exhibit.Grid)
	for g := range l.verdict.Generations {
		row := table.Rows[g]
		if bars.Y != "dollars" || bars.Series[0].Values[g] != cost[g] || row[len(row)-1] != cost[g] || row[len(row)-2].(int) <= 0 {
			t.Errorf("generation %d: %v dollars are drawn, %v, want %v", g, bars.Series[0].Values[g], row, cost[g])
		}
	}
	savings, _ := all["evolve-savings"].Show.(exhibit.Grid)
	row, prompts := savings.Rows[0], 0
	for _, g := range l.verdict.Generations {
		prompts += g.Prompts
	}
	if all, want := row[5].(int), prompts*12; all != want || row[1].(int)+row[2].(int)+row[3].(int) != all {
		t.Errorf("%v, want %d in all", row, want)
	}
}

// TestTrunk checks that the first parents are the trunk, whatever the lineage is.
func TestTrunk(t *testing.T) {
	t.Parallel()
	at := func(id int, parents ...int) Ancestor {
		return Ancestor{Prompt: Prompt{ID: id, Parents: parents, Operator: "a<b&c"}}
	}
	line := []Ancestor{at(0), at(1), at(4, 0, 1), at(7, 4, 0), at(9, 7, 1)}
	var ids []int
	for _, a := range trunkOf(line) {
		ids = append(ids, a.ID)
	}
	if !slices.Equal(ids, []int{0, 4, 7, 9}) {
		t.Errorf("trunk %v", ids)
	}
	for _, odd := range [][]Ancestor{nil, {at(3, 3)}, {at(1, 2), at(2, 1)}, {at(5, 77, -1)}} {
		trunkOf(odd)
	}
}

// TestLineageIsInert checks that a prompt in the lineage cannot leave its code block or hide anything.
func TestLineageIsInert(t *testing.T) {
	t.Parallel()
	v := &Verdict{Lineage: []Ancestor{{Prompt: Prompt{Operator: "<b>\n# x", Text: "a\r# forged\r\n```\n\u202eb\x1b[31m"}}}}
	text := lineageMarkdown(v)
	if strings.ContainsAny(text, "<\r\x1b\u202e") {
		t.Errorf("%q", text)
	}
	for line := range strings.Lines(text) {
		if strings.Contains(line, "forged") && !strings.HasPrefix(line, "    ") || strings.HasPrefix(line, "# x") || strings.HasPrefix(line, "```") {
			t.Errorf("%q", line)
		}
	}
}

// TestStoryOfChanges checks that a text that only moved is not told as gone and new.
func TestStoryOfChanges(t *testing.T) {
	t.Parallel()
	for diff, want := range map[string]string{
		"- a\n  b\n+ a\n":              "moved: a",
		"- a\n+ b\n":                   "gone: a, new: b",
		"- a\n- a\n  c\n+ a\n":         "gone: a, moved: a",
		"+ a\n  a\n+ a\n- b\n+ b\nx\n": "new: a, new: a, moved: b",
		"- a\n- a\n":                   "gone: a, gone: a",
		"":                             "",
	} {
		s := &storyBuilder{}
		s.Begin("x")
		s.changes(diff)
		var got []string
		for _, l := range s.Frames[0].Lines {
			got = append(got, l.Who+": "+l.Text)
		}
		if text := strings.Join(got, ", "); text != want {
			t.Errorf("%q: %s, want %s", diff, text, want)
		}
	}
	made := origin(&Prompt{Parents: []int{3, 3}, Operator: "single_point+insert"})
	if made != "Made from prompt 3 by single point and insert" {
		t.Error(made)
	}
}

// TestFilesOfAVerdict checks the files of a verdict, and that other episodes have none.
func TestFilesOfAVerdict(t *testing.T) {
	t.Parallel()
	l := (&testEvolution{t: t, seed: 5}).run(joinParams(smallParams, modelOperators))
	v := l.verdict
	var all map[string]string
	for i, stage := range l.stages {
		for _, p := range stage {
			if all = (definition{}).Files(nil, p, nil); (len(all) > 0) != (i == len(l.stages)-1) {
				t.Fatalf("stage %d: %v", i, all)
			}
		}
	}
	if all["best.txt"] != v.Winner.Text+"\n" {
		t.Errorf("%q", all["best.txt"])
	}
	var b struct {
		Prompt  string
		Test    []Tested
		Lineage []Ancestor
	}
	if err := json.Unmarshal([]byte(all["best.json"]), &b); err != nil || b.Prompt != v.Winner.Text || len(b.Test) != len(v.Test) || b.Lineage[len(b.Lineage)-1].ID != v.Winner.ID {
		t.Errorf("%v %s", err, all["best.json"])
	}
	if text := all["lineage.md"]; !strings.Contains(text, "by seed: fitness ") || !strings.Contains(text, "\n    + ") {
		t.Error(text)
	}
}

// TestFilesOfAnything checks that a verdict without a winner has no files, and that
// hostile data causes no panic.
func TestFilesOfAnything(t *testing.T) {
	t.Parallel()
	of := func(data string) map[string]string {
		return definition{}.Files(nil, world.Played{Outcome: world.Outcome{Data: json.RawMessage(data)}}, nil)
	}
	if all := of(`{"stopped":"failures"}`); len(all) != 0 {
		t.Error(all)
	}
	for _, data := range []string{``, `null`, `[]`, `{"stopped":"x","winner":{"text":"a"},"lineage":[{"id":3,"parents":[3]},{"id":-1,"parents":[9,9]}],"generations":[{}]}`} {
		of(data)
	}
}

// TestBoundsOfAMeasure: the final test knows the bounds of what evolved, as the verdict does, so both show one interval.
func TestBoundsOfAMeasure(t *testing.T) {
	t.Parallel()
	m := &Measured{Score: world.Measure{Name: "points", Bounds: world.Bounds{Low: -2, High: 3}}}
	x := &report{all: []*evolution{{
		measure: &Measured{Score: world.Measure{Name: "points"}}, verdict: &Verdict{Stopped: stopGenerations, Measure: m},
		entrants: []string{winnerName}, tests: map[string][]float64{winnerName: {3, -2, 1}},
	}}}
	rows := x.tests().Rows
	if len(rows) != 1 || rows[0].Sample.Bounds != m.Score.Bounds {
		t.Errorf("%+v", rows)
	}
}
