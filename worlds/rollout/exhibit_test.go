package rollout

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"parley/world"
	"parley/world/exhibit"
	"parley/world/rubric"
	"parley/worlds/rollout/rules"
)

// playedEpisode returns an episode for a report: of a task of a plan with groups of two.
func playedEpisode(episode int, env string, reward float64, change func(d *rules.Data, p *world.Played)) world.Played {
	d := rules.Data{Env: env, Stop: rules.StopTerminated, Steps: 3, Tries: 1, Rows: []rules.Row{{Seat: "agent", Completed: true, Reward: reward, Weights: fmt.Sprint(episode / 4)}}}
	p := world.Played{
		Episode: episode,
		Spec:    world.Spec{Params: fmt.Appendf(nil, `{"env":%q,"group":2}`, env), Lineup: map[string]string{"agent": "x"}, Deal: episode / 2},
		Outcome: world.Outcome{Scores: []world.Score{{Seat: "agent", Name: "reward", Value: reward}, {Name: "steps", Value: 3}}},
		Unit:    world.Unit{Deal: episode/2 + 1},
		Took:    world.Took{Input: 100, Output: 10, Began: float64(episode), Ended: float64(episode) + 2, Asked: 1, Acted: 0.5, Waited: 0.25},
	}
	if change != nil {
		change(&d, &p)
	}
	raw, err := json.Marshal(d)
	if err != nil {
		panic(err)
	}
	p.Outcome.Data = json.RawMessage(raw)
	return p
}

func failing(why string) func(d *rules.Data, p *world.Played) {
	return func(d *rules.Data, p *world.Played) {
		d.Stop, d.Tries, p.Outcome.Failed, p.Outcome.Scores = rules.StopFailed, 3, why, nil
	}
}

// shows returns the exhibits of episodes, by name.
func shows(t *testing.T, all ...world.Played) map[string]exhibit.Show {
	t.Helper()
	x := newExhibits(0)
	for _, p := range all {
		x.Add(p)
	}
	out := map[string]exhibit.Show{}
	for _, e := range x.Exhibits() {
		if e.Title == "" || e.Show == nil || out[e.Name] != nil {
			t.Errorf("%+v", e)
		}
		out[e.Name] = e.Show
	}
	return out
}

func column(g exhibit.Grid, row int, name string) any {
	return g.Rows[row][slices.Index(g.Columns, name)]
}

func TestExhibits(t *testing.T) {
	t.Parallel()
	var all []world.Played
	for i := range 12 { // groups 1 to 6 of maze: 0 and 1, 1 and 2, …
		all = append(all, playedEpisode(i, "maze", float64(i/2+i%2), nil))
	}
	all = append(all,
		playedEpisode(12, "word", 1, nil), playedEpisode(13, "word", 1, nil), // equal
		playedEpisode(14, "word", 1, nil), playedEpisode(15, "word", 0, failing("environment: step 4: malformed (3 tries)")), // short
		playedEpisode(16, "word", 2, func(d *rules.Data, p *world.Played) { d.Stop, p.Took.Attempt, d.Unmatched = rules.StopMaxSteps, 1, 2 }), // open
	)
	got := shows(t, all...)
	rewards := got["rollout-rewards"].(exhibit.Grid)
	if s := column(rewards, 0, "reward").(*world.Sample); s.Estimate(0.95).Value != 3 || s.Estimate(0.95).N != 6 || column(rewards, 0, "episodes") != 12 || column(rewards, 0, "highest") != 6.0 {
		t.Errorf("rewards: %v of %d groups: %v", s.Estimate(0.95), s.Episodes(), rewards.Rows)
	}
	if s := column(rewards, 1, "reward").(*world.Sample); s.Episodes() != 4 || column(rewards, 1, "player") != "word" {
		t.Errorf("a failed episode is in a mean: %v", rewards.Rows[1])
	}
	groups := got["rollout-groups"].(exhibit.Grid)
	if fmt.Sprint(groups.Rows[0][1:6], groups.Rows[1][1:6]) != "[6 6 0 0 0] [3 1 1 1 1]" {
		t.Errorf("groups: %v", groups.Rows)
	}
	each := got["rollout-group-rewards"].(exhibit.Grid)
	if !slices.ContainsFunc(each.Rows, func(r []any) bool {
		return fmt.Sprintf("%v, %v, %v", r[0], r[2], r[4]) == "word:8, 1 of 2, short: 1 failed"
	}) {
		t.Errorf("a short group has no reason: %v", each.Rows)
	}
	trouble := fmt.Sprint(got["rollout-trouble"].(exhibit.Grid).Rows)
	for _, want := range []string{"[failed: environment: step: malformed 1 episodes]", "began again from a reset 1 episodes", "resets after an environment was lost 2 tries", "cut off in the middle of them 1 episodes", "2 rewards"} {
		if !strings.Contains(trouble, want) {
			t.Errorf("trouble: %s: want %s", trouble, want)
		}
	}
	versions := got["rollout-versions"].(exhibit.Curves)
	if len(versions.Curves) != 2 || len(versions.Curves[0].Points) != 3 || versions.Curves[0].Points[1].Sample.Estimate(0.95).Value != 3 {
		t.Errorf("versions: %+v", versions)
	}
	stops := got["rollout-stops"].(exhibit.Bars)
	if fmt.Sprint(stops.Labels, stops.Series[0].Values, stops.Series[1].Values) != "[terminated max_steps failed] [12 0 0] [3 1 1]" {
		t.Errorf("stops: %+v", stops)
	}
}

// TestExhibitsOfTime checks that the time of episodes is split.
func TestExhibitsOfTime(t *testing.T) {
	t.Parallel()
	var all []world.Played
	for i := range 30 {
		all = append(all, playedEpisode(i, "maze", float64(i)/7, nil))
	}
	got := shows(t, all...)
	shares := 0.0
	for i := range got["rollout-time"].(exhibit.Grid).Rows {
		shares += column(got["rollout-time"].(exhibit.Grid), i, "share").(*world.Sample).Estimate(0.95).Value
	}
	if math.Abs(shares-1) > 1e-9 {
		t.Errorf("shares of the time make %v", shares)
	}
	bars := got["rollout-distribution"].(exhibit.Bars)
	sum := 0.0
	for _, v := range bars.Series[0].Values {
		sum += v
	}
	if sum != 30 || len(bars.Labels) > maxBars || bars.Labels[0] != "0–1" {
		t.Errorf("%v episodes in %v", sum, bars.Labels)
	}
	if c := got["rollout-curve"].(exhibit.Curves).Curves[0]; len(c.Points) < 3 || c.Points[0].Sample.Episodes() < 3 {
		t.Errorf("curve: %+v", c)
	}
}

// TestSeveralPlayers checks that the names of players have only what differs between them.
func TestSeveralPlayers(t *testing.T) {
	t.Parallel()
	two := func(_ *rules.Data, p *world.Played) {
		p.Spec.Lineup = map[string]string{"agent": "x", "other": "y"}
		p.Outcome.Scores = append(p.Outcome.Scores, world.Score{Seat: "other", Name: "reward", Value: 1})
	}
	g := shows(t, playedEpisode(0, "duel", 1, two), playedEpisode(1, "duel", 2, two))["rollout-rewards"].(exhibit.Grid)
	if len(g.Rows) != 2 || g.Rows[0][0] != "duel · agent" || g.Rows[1][0] != "duel · other" || g.Rows[1][1] != "y" {
		t.Errorf("%v", g.Rows)
	}
	swap := func(_ *rules.Data, p *world.Played) { p.Spec.Lineup = map[string]string{"agent": "z"} }
	g = shows(t, playedEpisode(0, "maze", 1, nil), playedEpisode(2, "maze", 2, swap))["rollout-rewards"].(exhibit.Grid)
	if len(g.Rows) != 2 || g.Rows[0][0] != "maze · x" || g.Rows[1][0] != "maze · z" {
		t.Errorf("%v", g.Rows)
	}
}

// TestExhibitsOfAnything checks that data of another form is skipped, without a panic.
func TestExhibitsOfAnything(t *testing.T) {
	t.Parallel()
	if got := shows(t); len(got) != 0 {
		t.Errorf("no episodes: %v", got)
	}
	var all []world.Played
	for i, data := range []string{`null`, `3`, `{}`, `{"stop":"terminated"}`, `{"stop":"x","env":"e","rows":[{}],"steps":-4}`, `{"stop":"failed","rows":null}`} {
		for _, params := range []string{``, `{}`, `{"task":{}}`, `{"task":{"group":"g","size":-1},"group":-2}`} {
			p := playedEpisode(i, "e", 1, nil)
			p.Outcome.Data, p.Spec.Params = json.RawMessage(data), json.RawMessage(params)
			p.Outcome.Scores = []world.Score{{Name: "reward", Value: math.Inf(1)}, {Name: "reward", Seat: "s", Value: 1e308 * float64(i-2)}, {Name: "reward", Seat: "t", Value: math.NaN()}}
			p.Took = world.Took{Began: 9, Ended: 2, Asked: -1}
			all = append(all, p)
		}
	}
	for i := range 20 {
		all = append(all, playedEpisode(i, "f", math.Pow(-10, float64(i*15)), nil))
	}
	all = append(all, world.Played{}, world.Played{Outcome: world.Outcome{Data: 7}})
	shows(t, all...)
}

// TestExhibitsOfJudges: the report of a run with judges says how far they agree, as that of scores does.
func TestExhibitsOfJudges(t *testing.T) {
	t.Parallel()
	var all []world.Played
	for i := range 20 {
		p := playedEpisode(i, "maze", 1, func(d *rules.Data, p *world.Played) {
			p.Spec.Params = json.RawMessage(`{"judge":{"questions":{"clear":{"ask":"?","scale":[0,9]}}}}`)
			for _, judge := range []string{"mild", "strict"} {
				d.Ratings = append(d.Ratings, rubric.Rating{Question: "clear", Seat: "agent", Judge: judge, Value: float64(i % 10), Length: 10 * i})
			}
		})
		all = append(all, p)
	}
	got := shows(t, all...)
	if rows := got["rollout-agreement-of-judges"].(exhibit.Grid).Rows; fmt.Sprint(rows[0][:4]) != "[clear 2 20 1]" {
		t.Errorf("agreement %v", rows)
	}
	if rows := got["rollout-length-bias"].(exhibit.Grid).Rows; len(rows) != 2 {
		t.Errorf("length %v", rows)
	}
}
