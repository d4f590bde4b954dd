package secrets

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"parley/world"
)

func unmarshal[T any](t *testing.T, b []byte) (v T) {
	t.Helper()
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func same(a, b []float64) bool {
	for i := range a {
		if len(a) != len(b) || math.Abs(a[i]-b[i]) > 0.005 {
			return false
		}
	}
	return len(a) == len(b)
}

// TestSettle checks what conversations of two players pay, by mode.
func TestSettle(t *testing.T) {
	t.Parallel()
	type result [2]bool
	neither, first, second, both := result{}, result{true, false}, result{false, true}, result{true, true}
	for _, c := range []struct {
		mode    string
		results []result
		want    []float64
	}{
		{modeStandard, []result{neither}, []float64{0, 0}},
		{modeStandard, []result{both}, []float64{1, 1}},
		{modeStandard, []result{first}, []float64{0, 3}},
		{modeStandard, []result{second}, []float64{3, 0}},
		{modeStandard, []result{first, both, second, first}, []float64{4, 7}},
		{modeRetained, []result{neither}, []float64{0, 0}},
		{modeRetained, []result{both}, []float64{2, 2}},
		{modeRetained, []result{first, first}, []float64{0, 2}},
		{modeDiversity, []result{second}, []float64{2, 0}},
		{modeDiversity, []result{second, both, second}, []float64{2, 2}}, // the same secret pays once
		{modeTargeted, []result{both}, []float64{1, 6}},                  // the target is the secret of the first
		{modeTargeted, []result{first, both}, []float64{1, 6}},
		{modeTargeted, []result{second}, []float64{1, 0}},
	} {
		l := newStandings(c.mode, nil, 2, map[bool]int{true: 0, false: -1}[c.mode == modeTargeted])
		for _, r := range c.results {
			l.settle(0, 1, r[0], r[1])
		}
		if got := l.totals(); !same(got, c.want) {
			t.Errorf("%s %v: %v, want %v", c.mode, c.results, got, c.want)
		}
		if len(l.held[0]) > 1 || len(l.held[1]) > 1 || c.mode == modeStandard && len(l.held[0])+len(l.held[1]) > 0 {
			t.Errorf("%s %v: collected %v", c.mode, c.results, l.held)
		}
	}
}

// TestTotals checks what collected secrets pay at the end. A secret is the index of its owner.
func TestTotals(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		mode   string
		points map[string]float64
		held   [][]int
		want   []float64
	}{
		{modeRetained, nil, [][]int{{1, 2}, {0}, {0, 3}, {0, 1, 2}}, []float64{4, 1.33, 5.33, 5.33}},
		{modeDiversity, nil, [][]int{{1, 2, 2}, {0, 3, 0}, {0, 1, 3}, {}}, []float64{4, 4, 6, 0}},
		{modeDiversity, map[string]float64{"secret": 0.5}, [][]int{{1, 2}, {}, {1}}, []float64{1, 0, 0.5}},
		{modeTargeted, nil, [][]int{{1}, {2, 0}, {0, 1}}, []float64{1, 7, 7}},
		{modeTargeted, map[string]float64{"target": -2}, [][]int{{1}, {2, 0}, {0, 1}}, []float64{1, 0, 0}},
		{modeRetained, nil, [][]int{{}, {}}, []float64{0, 0}},
	} {
		l := newStandings(c.mode, c.points, len(c.held), 0)
		l.held = c.held
		if got := l.totals(); !same(got, c.want) {
			t.Errorf("%s %v: %v, want %v", c.mode, c.held, got, c.want)
		}
	}
}

// TestScores plays conversations in which each player gives its secret away in one turn, or never.
func TestScores(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		first, second int // the turn in which each gives its secret away, or -1
		want          [8]float64
		both, one     float64
		reveals       string
	}{
		{-1, -1, [8]float64{0, 0, 0, 0, 0, 0, 0, 0}, 0, 0, "[]"},
		{2, 3, [8]float64{1, 1, 1, 0, 1, 1, 1, 0}, 1, 0, "[{first 3 said} {second 4 said}]"},
		{4, 1, [8]float64{1, 1, 1, 0, 1, 1, 1, 0}, 1, 0, "[{second 2 said} {first 5 said}]"},
		{0, -1, [8]float64{0, 1, 0, 0, 3, 0, 1, 1}, 0, 1, "[{first 1 said}]"},
		{-1, 5, [8]float64{3, 0, 1, 1, 0, 1, 0, 0}, 0, 1, "[{second 6 said}]"},
	} {
		p := script(t, "{}", 3, func(turn int, own, other string) world.Reply {
			if turn == c.first || turn == c.second {
				return botReply("Well then: " + strings.ToUpper(own) + "!")
			}
			return botReply("I guess yours is " + other + "?") // a guess does not give the own secret away
		})
		var got [8]float64
		for i, seat := range []string{firstSeat, secondSeat} {
			for j, name := range []string{"points", "revealed", "obtained", "optimal"} {
				got[4*i+j] = p.score(seat, name)
			}
		}
		k := p.record.Conversations[0]
		if got != c.want || fmt.Sprint(k.Reveals) != c.reveals || k.Messages != 6 || p.outcome.Failed != "" || len(k.Named) != 2 {
			t.Errorf("revealed in turns %d and %d: %v, %+v; want %v, %s", c.first, c.second, got, k, c.want, c.reveals)
		}
		if p.score("", "both") != c.both || p.score("", "one-sided") != c.one || p.score(firstSeat, "won") != -1 {
			t.Errorf("revealed in turns %d and %d: %+v", c.first, c.second, p.outcome.Scores)
		}
	}
}

// TestTournamentScores plays a full cycle in which one player gives its secret to everybody and the
// others keep theirs.
func TestTournamentScores(t *testing.T) {
	t.Parallel()
	for mode, want := range map[string][2]float64{ // of player1, and of each other player
		modeStandard: {0, 3}, modeRetained: {0, 5.0 / 4}, modeDiversity: {0, 2}, modeTargeted: {0, 6},
	} {
		target := ""
		if mode == modeTargeted {
			target = `, "target": "player1"`
		}
		p := drive(t, `{"mode": "`+mode+`", "players": 5, "rounds": 5, "messages": 1`+target+`}`, 0, func(_ *played, c world.Call) world.Reply {
			if c.Seat == "player1" {
				return botReply("It is " + wordOf(c) + ".")
			}
			return botReply("No.")
		})
		for i, seat := range p.seats() {
			if got := p.score(seat, "points"); math.Abs(got-want[asInt(i > 0)]) > 1e-9 {
				t.Errorf("%s: %s has %v, want %v", mode, seat, got, want)
			}
			if p.score(seat, "revealed") != float64(asInt(i == 0)) || p.score(seat, "won") != 0 {
				t.Errorf("%s: %s: %+v", mode, seat, p.outcome.Scores)
			}
		}
		// Each of the others has four conversations, one of them with player1.
		if p.score("player2", "optimal") != 0.25 || p.score("player2", "obtained") != 0.25 || p.score("", "one-sided") != 0.4 || p.score("", "both") != 0 {
			t.Errorf("%s: %+v", mode, p.outcome.Scores)
		}
	}
}

// TestPointsCanBeSet checks that params.points changes both the scores and the rules in the prompt.
func TestPointsCanBeSet(t *testing.T) {
	t.Parallel()
	p := script(t, `{"points": {"only_other": 7.5, "only_own": -2}, "messages": 1}`, 0, func(turn int, own, _ string) world.Reply {
		return []world.Reply{botReply("It is " + own + "."), botReply("Thanks.")}[turn]
	})
	system := p.calls[0].Ask.Messages[0].Text()
	if p.score(firstSeat, "points") != -2 || p.score(secondSeat, "points") != 7.5 || !strings.Contains(system, "- 7.5 points if only the other") || !strings.Contains(system, "- -2 points if only you") {
		t.Errorf("%+v\n%s", p.outcome.Scores, system)
	}
}

// TestPointBounds: no game pays less or more than is declared, and both ends are possible.
func TestPointBounds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		params    Params
		low, high float64
	}{
		{Params{Mode: modeStandard, Players: 2, Rounds: 1}, 0, 3},
		{Params{Mode: modeStandard, Players: 5, Rounds: 4}, 0, 12},
		{Params{Mode: modeStandard, Players: 2, Rounds: 3, Points: map[string]float64{"neither": 1, "only_own": -2}}, -6, 9},
		{Params{Mode: modeStandard, Players: 2, Rounds: 3, Points: map[string]float64{"neither": 1, "only_own": 2}}, 1, 9},
		{Params{Mode: modeRetained, Players: 4, Rounds: 2}, 0, 8},
		{Params{Mode: modeDiversity, Players: 4, Rounds: 20}, 0, 6},
		{Params{Mode: modeTargeted, Players: 3, Rounds: 2}, 0, 7},
		{Params{Mode: modeTargeted, Players: 3, Rounds: 2, Points: map[string]float64{"secret": -1}}, -2, 4},
		{Params{Mode: modeTargeted, Players: 3, Rounds: 2, Points: map[string]float64{"target": -7}}, -6, 2},
		{Params{Mode: modeDiversity, Players: 3, Rounds: 2, Points: map[string]float64{"secret": 0}}, math.Inf(-1), math.Inf(1)},
	} {
		if got := c.params.pointBounds(); got.Low != c.low || got.High != c.high {
			t.Errorf("%+v: %v, want %v to %v", c.params, got, c.low, c.high)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		p := Params{Mode: rapid.SampledFrom(oneOf("Mode")).Draw(t, "mode"), Players: rapid.IntRange(2, 7).Draw(t, "players"), Rounds: rapid.IntRange(1, 12).Draw(t, "rounds"), Points: map[string]float64{}}
		for _, pays := range payments(p.Mode) {
			p.Points[pays.name] = float64(rapid.IntRange(-30, 30).Draw(t, pays.name)) / 10
		}
		within, talked := p.pointBounds(), make([]bool, p.Players)
		l := newStandings(p.Mode, p.Points, p.Players, map[bool]int{true: rapid.IntRange(0, p.Players-1).Draw(t, "target"), false: -1}[p.Mode == modeTargeted])
		for range p.Rounds {
			players := rapid.Permutation(seatNumbers(p.Players)).Draw(t, "pairs")
			for pair := range slices.Chunk(players, 2) {
				if len(pair) == 2 && rapid.Bool().Draw(t, "held") {
					talked[pair[0]], talked[pair[1]] = true, true
					l.settle(pair[0], pair[1], rapid.Bool().Draw(t, "a"), rapid.Bool().Draw(t, "b"))
				}
			}
		}
		for i, points := range l.totals() {
			if talked[i] && (points < within.Low || points > within.High) && !within.Any() {
				t.Fatalf("%+v: %v is not within %v", p, points, within)
			}
		}
	})
}

func seatNumbers(n int) (all []int) {
	for i := range n {
		all = append(all, i)
	}
	return all
}
