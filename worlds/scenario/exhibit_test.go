package scenario

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"parley/internal/kit/statmath"
	"parley/world"
	"parley/world/exhibit"
)

// over is an episode that ended, with a
func over(t *testing.T, episode int, cell string, lineup map[string]string, failed string, r outcomeData) world.Played {
	t.Helper()
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return world.Played{Episode: episode, Spec: world.Spec{Cell: cell, Lineup: lineup}, Outcome: world.Outcome{Failed: failed, Data: json.RawMessage(b)}}
}

func values(all ...float64) []*float64 {
	out := make([]*float64, len(all))
	for i := range all {
		if all[i] >= 0 {
			out[i] = &all[i]
		}
	}
	return out
}

// record is a game of two in which a metric went as given; negative is unknown.
func recorded(tension ...float64) outcomeData {
	warning := 6.0
	return outcomeData{
		Name: "n", Turns: len(tension) - 1, Ended: "its last turn was played",
		Metrics: []metricCurve{
			{Name: "tension", Unit: "points", Values: values(tension...), Warning: &warning},
			{Name: "candour", Actor: "east", Values: values(tension...)}, {Name: "candour", Actor: "west", Values: values(tension...)},
			{Name: "deal", Boolean: true, Values: values(0, 1)}, {Name: "mood", Categories: []string{"low", "high"}, Values: values(0, 1)},
		},
		Events: []eventNote{{Turn: 1, Name: "storm"}, {Turn: 2, Name: "storm"}},
		Actors: []actorTally{
			{Actor: "east", Decisions: 2, Statements: 1, Wrote: map[string]int{"west": 3}, GoalsAdded: 1}, {Actor: "west", Decisions: 1, Silences: 1},
		},
		Coalitions: []proposedCoalition{{Turn: 1, Members: []string{"east", "west"}, Formed: true}, {Turn: 2, Members: []string{"east", "west"}}},
		Checks:     []checkTally{{Check: "world_state_coherence", Made: 4, Passed: 2, Unknown: 1}},
		Issues:     []Issue{{Turn: 1, Check: "world_state_coherence", Severity: "low", Text: "small"}, {Turn: 2, Check: "world_state_coherence", Severity: "critical", Text: "grave"}},
	}
}

// shownBy folds episodes, and returns the exhibits by name.
func shownBy(episodes ...world.Played) map[string]exhibit.Exhibit {
	g := newExhibitor()
	for _, p := range episodes {
		g.Add(p)
	}
	out := map[string]exhibit.Exhibit{}
	for _, e := range g.Exhibits() {
		out[e.Name] = e
	}
	return out
}

func TestExhibits(t *testing.T) {
	t.Parallel()
	var all []world.Played
	for i, first := range []float64{1, 2, 3} {
		all = append(all, over(t, i, "", nil, "", recorded(first, 5)))
	}
	all = append(all, over(t, 3, "", nil, "halted", outcomeData{Ended: "halted", Actors: []actorTally{{Actor: "east"}}, Turns: 1}))
	got := shownBy(all...)
	tension := got["scenario-metric-tension"].Show.(exhibit.Curves)
	if len(tension.Curves) != 2 || tension.Y != "points" || tension.Curves[1].Name != "warning threshold" || tension.Curves[1].Points[1].Sample.Estimate(0.95).Value != 6 {
		t.Errorf("%+v", tension)
	}
	if p := tension.Curves[0].Points; len(p) != 2 || p[0].Sample.Episodes() != 3 || p[0].Sample.Estimate(0.95).Value != 2 || p[1].X != 1 {
		t.Errorf("%+v", p)
	}
	g := newExhibitor()
	for _, p := range all {
		g.Add(p)
	}
	if list := g.Exhibits(); list[0].Name != "scenario-metric-tension" || list[1].Name != "scenario-metric-candour" || list[4].Name != "scenario-final" {
		t.Errorf("the page begins with %s, %s", list[0].Name, list[1].Name)
	}
	final := map[any]float64{}
	for _, row := range got["scenario-final"].Show.(exhibit.Grid).Rows {
		final[row[0]] = row[1].(*world.Sample).Estimate(0.95).Value
	}
	if want := map[any]float64{"tension (points)": 5, "east's candour": 5, "west's candour": 5, "deal": 1, "mood: low": 0, "mood: high": 1}; !maps.Equal(final, want) {
		t.Errorf("after the last turn: %v, want %v", final, want)
	}
	if c := got["scenario-metric-candour"].Show.(exhibit.Curves).Curves; len(c) != 2 || c[0].Name != "east" || c[1].Name != "west" {
		t.Errorf("%+v", c)
	}
	if deal := got["scenario-metric-deal"]; !deal.Show.(exhibit.Curves).Share {
		t.Errorf("%+v", deal)
	}
	// Categories have no mean: after turn 1 all are high, with Wilson's interval of three of three.
	mood := got["scenario-metric-mood"]
	curves := mood.Show.(exhibit.Curves)
	if len(curves.Curves) != 2 || curves.Curves[0].Name != "low" || curves.Curves[1].Name != "high" || !curves.Share || curves.Y != "share of episodes" || !strings.Contains(mood.Caption, "low, high") {
		t.Errorf("%+v", mood)
	}
	for i, want := range []statmath.Interval{statmath.Wilson(0, 3, 0.95), statmath.Wilson(3, 3, 0.95)} {
		if q := curves.Curves[i].Points[1].Sample.Estimate(0.95); q.Interval != want {
			t.Errorf("%s: %v, want %v", curves.Curves[i].Name, q, want)
		}
	}
	ends := got["scenario-ends"].Show.(exhibit.Estimates)
	if len(ends.Rows) != 2 || ends.Rows[0].Sample.Estimate(0.95).Value != 0.75 || ends.Rows[1].Labels[0] != "halted" {
		t.Errorf("%+v", ends)
	}
	if storm := got["scenario-events"].Show.(exhibit.Estimates).Rows[0].Sample; storm.Episodes() != 3 || storm.Estimate(0.95).Value != 1 {
		t.Errorf("an event that happens twice in an episode: %v", storm.Estimate(0.95))
	}
	if heat := got["scenario-talk"].Show.(exhibit.HeatMap); heat.Cells[0][1].Estimate(0.95).Value != 3 || heat.Cells[1][0].Estimate(0.95).Value != 0 || heat.Cells[0][0] != nil {
		t.Errorf("%+v", heat)
	}
	if rows := got["scenario-coalitions"].Show.(exhibit.Grid).Rows; len(rows) != 1 || rows[0][1] != 6 || rows[0][2] != 3 {
		t.Errorf("%v", rows)
	}
	checks := got["scenario-checks"].Show.(exhibit.Grid).Rows[0]
	if passed := checks[3].(*world.Sample).Estimate(0.95).Value; checks[1] != 12 || checks[2] != 3 || passed < 0.66 || passed > 0.67 || checks[5] != 3 {
		t.Errorf("%v, %v passed", checks, passed)
	}
	if worst := got["scenario-issues"].Show.(exhibit.Grid).Rows; worst[0][5] != "grave" || worst[3][5] != "small" {
		t.Errorf("%v", worst)
	}
}

// TestFewEpisodesHaveNoBand checks that two episodes have no band, which would be wider than the range of the
// metric, and that turns that few episodes reach are left out.
func TestFewEpisodesHaveNoBand(t *testing.T) {
	t.Parallel()
	for n, want := range map[int][]int{1: {1, 1, 1}, 2: {1, 1}, 4: {4, 4}} {
		var all []world.Played
		for i := range n {
			r := recorded(1, 2)
			if i == 0 {
				r = recorded(1, 2, 3) // one went on for longer
			}
			all = append(all, over(t, i, "", nil, "", r))
		}
		var got []int
		for _, p := range shownBy(all...)["scenario-metric-tension"].Show.(exhibit.Curves).Curves[0].Points {
			got = append(got, p.Sample.Episodes())
		}
		if !slices.Equal(got, want) {
			t.Errorf("%d episodes: points of %v, want %v", n, got, want)
		}
	}
}

// TestVariationNames: variations are named as their cells, without what is not needed to read them.
func TestVariationNames(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		cells []string
		want  string
	}{
		{[]string{"east=small"}, "all episodes"},
		{[]string{"east=small", "east=large"}, "east=small; east=large"},
		{[]string{"set={}", `set={"turns":2}`}, `as written; set={"turns":2}`},
		{[]string{"east=small, set={}", "east=small, set.turns=4, turns=3"}, "east=small; east=small, turns=4, turns=3"},
	} {
		if got := strings.Join((&exhibitor{cells: c.cells}).variations(), "; "); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
	two := shownBy(over(t, 0, "a", nil, "", recorded(1, 2)), over(t, 1, "b", nil, "", recorded(3, 4)))
	if c := two["scenario-metric-east-candour"].Show.(exhibit.Curves).Curves; len(c) != 2 || c[0].Name != "a" || c[1].Points[0].Sample.Estimate(0.95).Value != 3 {
		t.Errorf("%+v", c)
	}
}

// TestGraphIsXML checks that the picture is well-formed XML for any names of actors.
func TestGraphIsXML(t *testing.T) {
	t.Parallel()
	for _, names := range [][]string{nil, {"alone"}, {"a & b", `<script>"x"`}, {"1", "2", "3", "4", "5", "6", "7", "8"}} {
		g := newGraph(names)
		for i := range names {
			for j := range names {
				g.wrote[i][j] = float64(i + 2*j)
			}
			g.loud[i] = i%2 == 0
		}
		if len(names) > 2 {
			g.groups = [][]int{{0, 1, 2}}
		}
		svg := g.svg(true, true)
		d := xml.NewDecoder(strings.NewReader(svg))
		for {
			token, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%v: %v in\n%s", names, err, svg)
			}
			if e, ok := token.(xml.StartElement); ok && e.Name.Local == "script" {
				t.Error(svg)
			}
		}
		if strings.Contains(svg, "NaN") || strings.Contains(svg, "Inf") {
			t.Error(svg)
		}
	}
}

// TestCopiesCountOnce: of a fork at turn 4 of the first strand, turns 0 and 1 of the scenario are
// copies of one episode, and turn 2 was measured again.
func TestCopiesCountOnce(t *testing.T) {
	t.Parallel()
	const repeats = 5
	for past, want := range map[int]struct {
		n      []int
		issues int
	}{0: {[]int{repeats, repeats, repeats}, 2 * repeats}, 2: {[]int{1, repeats, repeats}, 2 * repeats}, 4: {[]int{1, 1, repeats}, 1 + repeats}, 5: {[]int{1, 1, 1}, 2}} {
		var all []world.Played
		for i := range repeats {
			p := over(t, i, "", nil, "", recorded(1, 2, float64(3+i)))
			p.Past = past
			all = append(all, p)
		}
		got := shownBy(all...)
		var n []int
		for _, p := range got["scenario-metric-tension"].Show.(exhibit.Curves).Curves[0].Points {
			n = append(n, p.Sample.Episodes())
		}
		if !slices.Equal(n, want.n) || len(got["scenario-issues"].Show.(exhibit.Grid).Rows) != want.issues {
			t.Errorf("past %d: %v, %d issues, want %+v", past, n, len(got["scenario-issues"].Show.(exhibit.Grid).Rows), want)
		}
		for name, text := range map[string]string{"scenario-metric-tension": "counts once", "scenario-checks": "counts once", "scenario-events": "a copy of one episode", "scenario-actors": "a copy of one episode"} {
			if says := strings.Contains(got[name].Caption, text); says != (past > 0) {
				t.Errorf("past %d: %s", past, got[name].Caption)
			}
		}
	}
}
