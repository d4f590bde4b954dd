package secrets

import (
	"encoding/json"
	"testing"

	"parley/world"
	"parley/world/exhibit"
	"parley/worlds/secrets/reveal"
)

// The seats of the games.
const (
	first  = "first"
	second = "second"
)

// shown returns the exhibits of a report on games, by name.
func shown(games ...world.Played) map[string]exhibit.Show {
	g := newReport()
	for _, p := range games {
		g.Add(p)
	}
	out := map[string]exhibit.Show{}
	for _, e := range g.Exhibits() {
		out[e.Name] = e.Show
	}
	return out
}

func game2(t *testing.T, mode string, conversations ...Conversation) world.Played {
	t.Helper()
	raw, err := json.Marshal(Game{Mode: mode, Points: map[string]float64{first: 3, second: 1}, Conversations: conversations})
	if err != nil {
		t.Fatal(err)
	}
	return world.Played{Spec: world.Spec{Lineup: map[string]string{first: "ann", second: "bob"}}, Outcome: world.Outcome{Data: json.RawMessage(raw)}}
}

func TestExhibits(t *testing.T) {
	t.Parallel()
	said := Conversation{
		Seats: [2]string{first, second}, Messages: 6, Revealed: []string{second},
		Reveals:  []Reveal{{Seat: second, Message: 4, Form: reveal.Said}},
		Verdicts: []Verdict{{Seat: first}, {Seat: second, Revealed: true}},
	}
	kept := Conversation{Seats: [2]string{first, second}, Messages: 5, Silences: 1, Revealed: []string{}}
	got := shown(game2(t, "standard", said), game2(t, "standard", kept, said), game2(t, "diversity", said),
		game2(t, "standard", Conversation{Seats: [2]string{first, second}, Failed: "nobody spoke"}),
		world.Played{Outcome: world.Outcome{Failed: "it broke"}},
		world.Played{Outcome: world.Outcome{Data: json.RawMessage(`{"mode":5}`)}}, world.Played{})
	const share = (1 + 0.5 + 1) / 3.0 // an episode counts once, however many conversations it has
	rates := map[string]float64{}
	for _, r := range got["secrets-rates"].(exhibit.Estimates).Rows {
		rates[r.Labels[0]+" "+r.Labels[1]] = r.Sample.Estimate(0.95).Value
		if n := r.Sample.Episodes(); n != 3 {
			t.Errorf("%v: %d episodes", r.Labels, n)
		}
	}
	for name, want := range map[string]float64{
		"revealed ann": 0, "revealed bob": share, "obtained ann": share, "obtained bob": 0, "optimal ann": share, "optimal bob": 0,
		"both " + bothPlayers: 0, "one-sided " + bothPlayers: share,
	} {
		if v, ok := rates[name]; !ok || v != want {
			t.Errorf("%s is %v, want %v", name, v, want)
		}
	}
	pairs := got["secrets-pairs"].(exhibit.HeatMap)
	if pairs.Cells[0][0] != nil || pairs.Cells[0][1].Estimate(0.95).Value != share || pairs.Cells[1][0].Estimate(0.95).Value != 0 {
		t.Errorf("%+v", pairs)
	}
	bob := got["secrets-slips"].(exhibit.Curves).Curves[1]
	if bob.Name != "bob" || len(bob.Points) != 7 || bob.Points[3].Sample.Estimate(0.95).Value != 0 || bob.Points[4].Sample.Estimate(0.95).Value != share {
		t.Errorf("%+v", bob)
	}
	if b := got["secrets-forms"].(exhibit.Bars); b.Labels[0] != "said" || b.Series[1].Values[0] != 3 {
		t.Errorf("%+v", b)
	}
	if m := got["secrets-modes"].(exhibit.Estimates); len(m.Rows) != 4 || m.Rows[0].Sample.Episodes() != 3 {
		t.Errorf("%+v", m)
	}
	if j := got["secrets-judge"].(exhibit.Grid); j.Rows[0][1] != 3 || j.Rows[1][2] != 3 {
		t.Errorf("%+v", j)
	}
}

// TestSlipsOfLongTalks checks that the curve of a long conversation has few points, and that the
// last one is the last message.
func TestSlipsOfLongTalks(t *testing.T) {
	t.Parallel()
	long := Conversation{Seats: [2]string{first, second}, Messages: 399, Revealed: []string{first}, Reveals: []Reveal{{Seat: first, Message: 399, Form: reveal.Said}}}
	points := shown(game2(t, "standard", long))["secrets-slips"].(exhibit.Curves).Curves[0].Points
	if last := points[len(points)-1]; len(points) > maxSteps+2 || last.X != 399 || last.Sample.Estimate(0.95).Value != 1 {
		t.Errorf("%d points, the last %+v", len(points), last)
	}
}

func TestExhibitsOfNothing(t *testing.T) {
	t.Parallel()
	if got := shown(); len(got) != 0 {
		t.Errorf("%v", got)
	}
}
