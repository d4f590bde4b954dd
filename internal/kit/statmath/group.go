package statmath

import (
	"cmp"
	"maps"
	"slices"
)

// groups splits players into groups within which every player scored against every other,
// directly or through a chain of games. Ratings are finite only within such a group
// (Ford's condition). A group whose players never lose points to other groups comes first.
func groups(games []Game) [][]string {
	took := map[string]map[string]bool{}
	for _, g := range games {
		for _, p := range []string{g.A, g.B} {
			if took[p] == nil {
				took[p] = map[string]bool{}
			}
		}
		if g.Score > 0 {
			took[g.A][g.B] = true
		}
		if g.Score < 1 {
			took[g.B][g.A] = true
		}
	}
	c := components{took: took, index: map[string]int{}, low: map[string]int{}, open: map[string]bool{}}
	for _, p := range slices.Sorted(maps.Keys(took)) {
		if _, seen := c.index[p]; !seen {
			c.visit(p)
		}
	}
	// Tarjan's method finds a group after the groups that it leads to.
	slices.Reverse(c.found)
	return c.found
}

// components finds strongly connected components, by Tarjan's method.
type components struct {
	took       map[string]map[string]bool
	index, low map[string]int
	stack      []string
	open       map[string]bool // on the stack
	found      [][]string
}

func (c *components) visit(p string) {
	c.index[p] = len(c.index)
	c.low[p] = c.index[p]
	c.stack = append(c.stack, p)
	c.open[p] = true
	for _, q := range slices.Sorted(maps.Keys(c.took[p])) {
		if _, seen := c.index[q]; !seen {
			c.visit(q)
			c.low[p] = min(c.low[p], c.low[q])
		} else if c.open[q] {
			c.low[p] = min(c.low[p], c.index[q])
		}
	}
	if c.low[p] != c.index[p] {
		return
	}
	from := slices.Index(c.stack, p)
	group := slices.Clone(c.stack[from:])
	c.stack = c.stack[:from]
	for _, q := range group {
		delete(c.open, q)
	}
	slices.Sort(group)
	c.found = append(c.found, group)
}

// record is the sum of a player's games.
type record struct {
	games int
	score float64
}

func recordsOf(games []Game) map[string]record {
	records := map[string]record{}
	add := func(player string, score float64) {
		r := records[player]
		records[player] = record{r.games + 1, r.score + score}
	}
	for _, g := range games {
		add(g.A, g.Score)
		add(g.B, 1-g.Score)
	}
	return records
}

// add rates a group by the games within it, and adds its players to the table.
func (t *Table) add(players []string, games []Game, records map[string]record, confidence float64) {
	var f *fit
	if len(players) > 1 {
		f = fitGroup(players, games, confidence)
	}
	t.fits = append(t.fits, f)
	standings := make([]Standing, len(players))
	for i, p := range players {
		r := records[p]
		s := Standing{Player: p, Group: len(t.fits), Rating: Unknown(r.games, "bradley-terry"), Score: r.score}
		switch {
		case f != nil:
			q := f.quantity(f.strength[i], f.covariance[i][i], f.games[i])
			q.Value, q.Low, q.High = q.Value+mean, q.Low+mean, q.High+mean
			s.Rating = q
		case len(players) > 1:
			s.Why = "the games of its group are too one-sided for ratings"
		default:
			s.Why = r.alone()
		}
		standings[i] = s
	}
	slices.SortStableFunc(standings, func(a, b Standing) int { return cmp.Compare(b.Rating.Value, a.Rating.Value) })
	t.Standings = append(t.Standings, standings...)
}

// alone says why a group of one has no rating.
func (r record) alone() string {
	switch r.score {
	case float64(r.games):
		return "won every game: how much stronger it is, the games do not show"
	case 0:
		return "lost every game: how much weaker it is, the games do not show"
	}
	return "won every game against some players and lost every game against the others: how far it is from either, the games do not show"
}
