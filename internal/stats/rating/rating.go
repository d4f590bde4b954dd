// Package rating says who is stronger, from games between two: Bradley-Terry ratings on
// the scale of Elo, with intervals.
//
// The model is that of Elo: the expected score of A against B, where a win is 1 and a
// tie is a half, is 1/(1+10^((b-a)/400)). The ratings are those under which every player
// was expected to score exactly what it scored, so the order of games does not matter.
//
// What it promises: ratings are given only where the games tell them. Whoever won or lost
// everything has none, only a place; players that no chain of games connects in both
// directions are in different groups, whose ratings cannot be compared. The same games in
// the same order give the same digits.
//
// It is not for rating while playing, nor for more than two at a table: compare two of them at a time.
package rating

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"parley/internal/stats"
)

const (
	// centre is the mean rating of a group.
	centre = 1500
	// perUnit is how much rating a factor of e in the odds makes.
	perUnit = 400 / math.Ln10
)

// Game is one game between A and B.
type Game struct {
	A, B  string
	Score float64 // of A: 1 won, 0.5 tied, 0 lost, or anything between
	// Deal names what the game shares with others, such as one deal played with sides
	// swapped: games of one deal are not independent. Default: none, it stands alone.
	Deal string
}

// Config says how to rate.
type Config struct {
	// Confidence of the intervals. Default: 0.95.
	Confidence float64
	// Prior is how many ties with an average player everyone is taken to have had
	// besides. With a prior everyone is rated, and nearer to the mean than the games
	// say. Default: 0.
	Prior float64
}

// Standing is where a player stands.
type Standing struct {
	Player string `json:"player"`
	// Group is 1 for the players at the top. Ratings are comparable within a group.
	Group  int            `json:"group"`
	Rating stats.Quantity `json:"rating"` // N is the number of games
	Score  float64        `json:"score"`  // a win is 1, a tie a half
	// Why says why there is no rating, or nothing.
	Why string `json:"why,omitempty"`
}

// Table is who stands where: by group, and within a group by rating.
type Table struct {
	Standings []Standing
	fits      []*fit // by group, from 0; nil for a group that has no ratings
	places    map[string]place
}

// place is where a player is in the fits.
type place struct{ group, index int }

// Rate rates whoever plays in games.
func Rate(games []Game, c Config) (*Table, error) {
	if c.Confidence == 0 {
		c.Confidence = 0.95
	}
	if !(c.Confidence > 0 && c.Confidence < 1) {
		return nil, fmt.Errorf("rating: confidence %v: want one between 0 and 1, as 0.95", c.Confidence)
	}
	if !(c.Prior >= 0) || math.IsInf(c.Prior, 1) {
		return nil, fmt.Errorf("rating: prior %v: want 0 or more ties", c.Prior)
	}
	if err := check(games); err != nil {
		return nil, err
	}
	t := &Table{places: map[string]place{}}
	groups := groups(games, c.Prior > 0)
	for number, players := range groups {
		for i, p := range players {
			t.places[p] = place{number, i}
		}
	}
	// Between groups, whoever is above always wins: such games tell nothing more.
	within := make([][]Game, len(groups))
	for _, g := range games {
		if at := t.places[g.A].group; at == t.places[g.B].group {
			within[at] = append(within[at], g)
		}
	}
	records := recordsOf(games)
	for number, players := range groups {
		t.add(players, within[number], records, c)
	}
	return t, nil
}

// check refuses games that are none.
func check(games []Game) error {
	for i, g := range games {
		switch {
		case g.A == "" || g.B == "":
			return fmt.Errorf("rating: game %d: %q against %q: a player without a name", i, g.A, g.B)
		case g.A == g.B:
			return fmt.Errorf("rating: game %d: %q against itself", i, g.A)
		case !(g.Score >= 0 && g.Score <= 1):
			return fmt.Errorf("rating: game %d: %q against %q: score %v: want 1 for a win of the first, 0 for a loss, 0.5 for a tie", i, g.A, g.B, g.Score)
		}
	}
	return nil
}

// Difference returns by how much a is rated above b, with its interval: sharper than
// their two intervals side by side, since both ratings come from the same games. It is
// not known where one of them has no rating or they are in different groups.
func (t *Table) Difference(a, b string) stats.Quantity {
	x, okA := t.places[a]
	y, okB := t.places[b]
	if !okA || !okB || x.group != y.group || t.fits[x.group] == nil {
		return stats.Unknown(0, "bradley-terry")
	}
	f := t.fits[x.group]
	variance := f.covariance.At(x.index, x.index) + f.covariance.At(y.index, y.index) - 2*f.covariance.At(x.index, y.index)
	return f.quantity(f.strength[x.index]-f.strength[y.index], variance, min(f.games[x.index], f.games[y.index]))
}

// Expected returns what a is expected to score against b: 1 is always to win.
func (t *Table) Expected(a, b string) stats.Quantity {
	d := t.Difference(a, b)
	score := func(elo float64) float64 { return 1 / (1 + math.Exp(-elo/perUnit)) }
	d.Value, d.Low, d.High = score(d.Value), score(d.Low), score(d.High)
	return d
}

// quantity puts a strength, or a difference of two, on the scale of Elo.
func (f *fit) quantity(strength, variance float64, games int) stats.Quantity {
	value, half := strength*perUnit, f.reach*math.Sqrt(max(0, variance))*perUnit
	q := stats.Unknown(games, f.method)
	q.Value = value
	if !math.IsNaN(half) {
		q.Low, q.High = value-half, value+half
	}
	return q
}

// fit is what was found out about the players of a group.
type fit struct {
	players    []string
	games      []int
	strength   []float64 // natural logarithms of odds, mean 0
	covariance *mat.SymDense
	reach      float64 // how many standard errors an interval reaches to each side
	method     string
}
