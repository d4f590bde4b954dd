// Part rating rates players from games between two: Bradley-Terry ratings on
// the scale of Elo, with intervals.
//
// The model is that of Elo: the expected score of A against B, where a win is 1 and a
// tie is a half, is 1/(1+10^((b-a)/400)). Under the ratings, the expected score of every player
// is its actual score, so the order of games does not matter.
//
// A player has a rating only if the games determine it. A player that won or lost
// every game has none. Players that no chain of games connects in both
// directions are in different groups, whose ratings cannot be compared. The same games in
// the same order give the same digits.
//
// For more than two players at a table, rate them in pairs.

package statmath

import (
	"fmt"
	"math"
)

const (
	// mean is the mean rating of a group.
	mean = 1500
	// perUnit is the difference in rating that multiplies the odds by e.
	perUnit = 400 / math.Ln10
)

// Game is one game between A and B.
type Game struct {
	A, B  string
	Score float64 // of A: 1 won, 0.5 tied, 0 lost, or anything between
	// Deal is equal for games that depend on each other, such as one deal played with sides
	// swapped. If it is empty, the game is independent.
	Deal string
}

// Standing is the result of a player.
type Standing struct {
	Player string `json:"player"`
	// Group is 1 for the players at the top. Ratings are comparable within a group.
	Group  int      `json:"group"`
	Rating Quantity `json:"rating"` // N is the number of games
	Score  float64  `json:"score"`  // a win is 1, a tie a half
	// Why explains why there is no rating. It is empty if there is one.
	Why string `json:"why,omitempty"`
}

// Table has the standings by group, and within a group by rating.
type Table struct {
	Standings []Standing
	fits      []*fit // by group, from 0; nil for a group without ratings
}

// Rate rates the players of games, with intervals of the given confidence.
func Rate(games []Game, confidence float64) (*Table, error) {
	if !(confidence > 0 && confidence < 1) {
		return nil, fmt.Errorf("rating: confidence %v: want a number between 0 and 1, for example 0.95", confidence)
	}
	if err := check(games); err != nil {
		return nil, err
	}
	t, groups, groupOf := &Table{}, groups(games), map[string]int{}
	for number, players := range groups {
		for _, p := range players {
			groupOf[p] = number
		}
	}
	// Between groups the higher one always wins: such games add nothing.
	within := make([][]Game, len(groups))
	for _, g := range games {
		if number := groupOf[g.A]; number == groupOf[g.B] {
			within[number] = append(within[number], g)
		}
	}
	records := recordsOf(games)
	for number, players := range groups {
		t.add(players, within[number], records, confidence)
	}
	return t, nil
}

// check refuses invalid games.
func check(games []Game) error {
	for i, g := range games {
		switch {
		case g.A == "" || g.B == "":
			return fmt.Errorf("rating: game %d: %q against %q: a player has no name", i, g.A, g.B)
		case g.A == g.B:
			return fmt.Errorf("rating: game %d: %q against itself", i, g.A)
		case !(g.Score >= 0 && g.Score <= 1):
			return fmt.Errorf("rating: game %d: %q against %q: score %v: want 1 for a win of the first, 0 for a loss, 0.5 for a tie", i, g.A, g.B, g.Score)
		}
	}
	return nil
}

// quantity puts a strength, or a difference of two, on the scale of Elo.
func (f *fit) quantity(strength, variance float64, games int) Quantity {
	value, half := strength*perUnit, f.reach*math.Sqrt(max(0, variance))*perUnit
	q := Unknown(games, f.method)
	q.Value = value
	if !math.IsNaN(half) {
		q.Low, q.High = value-half, value+half
	}
	return q
}

// fit has the strengths of the players of a group.
type fit struct {
	players    []string
	games      []int
	strength   []float64 // natural logarithms of odds, mean 0
	covariance matrix
	reach      float64 // half the width of an interval, in standard errors
	method     string
}
