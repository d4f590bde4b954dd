package statmath

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
)

const (
	// meanRating is the mean rating of a group.
	meanRating = 1500
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

// Rate rates the players of games between two: Bradley-Terry ratings on the scale of Elo, with intervals of the given
// confidence.
//
// The model is that of Elo: the expected score of A against B, where a win is 1 and a
// tie is a half, is 1/(1+10^((b-a)/400)). Under the ratings, the expected score of every player
// is its actual score, so the order of games does not matter.
//
// A player has a rating only if the games determine it. A player that won or lost
// every game has none. Players that no chain of games connects in both
// directions are in different groups, whose ratings cannot be compared. The same games in
// the same order give the same digits. For more than two players at a table, rate them in pairs.
func Rate(games []Game, confidence float64) (*Table, error) {
	if !(confidence > 0 && confidence < 1) {
		return nil, fmt.Errorf("rating: confidence %v: want a number between 0 and 1, for example 0.95", confidence)
	}
	if err := checkGames(games); err != nil {
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

// checkGames refuses invalid games.
func checkGames(games []Game) error {
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
			q.Value, q.Low, q.High = q.Value+meanRating, q.Low+meanRating, q.High+meanRating
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

// pairing is all games between two players, i before j.
type pairing struct {
	i, j  int
	games float64
}

// fitGroup finds the strengths under which the expected score of every player is its actual score in the
// games among players. It returns nil if it finds none.
func fitGroup(players []string, games []Game, confidence float64) *fit {
	index := map[string]int{}
	for i, p := range players {
		index[p] = i
	}
	f := &fit{players: players, games: make([]int, len(players))}
	score := make([]float64, len(players))
	counts := map[[2]int]float64{}
	for _, g := range games {
		i, j := index[g.A], index[g.B]
		score[i] += g.Score
		score[j] += 1 - g.Score
		f.games[i]++
		f.games[j]++
		counts[[2]int{min(i, j), max(i, j)}]++
	}
	var pairings []pairing
	for k, n := range counts {
		pairings = append(pairings, pairing{k[0], k[1], n})
	}
	slices.SortFunc(pairings, func(a, b pairing) int { return cmp.Or(cmp.Compare(a.i, b.i), cmp.Compare(a.j, b.j)) })
	if !f.solve(score, pairings) || !f.measure(index, games, pairings, confidence) {
		return nil
	}
	return f
}

// solve finds the strengths by Newton's method from equal ones, with shorter steps where a whole one goes too far: the games are never
// more likely elsewhere. The mean stays 0. It reports whether the expected scores match the actual ones.
func (f *fit) solve(score []float64, pairings []pairing) bool {
	f.strength = make([]float64, len(score))
	missing, enough := f.missing(score, pairings), 1e-12*(1+slices.Max(score))
	for i, s := range score { // one that is barely above 0, or below all games, must be met too
		enough = min(enough, 1e-6*min(s, float64(f.games[i])-s))
	}
	for range 200 {
		if vectorLength(missing) <= enough {
			return true
		}
		factor := f.information(pairings).cholesky()
		if factor == nil {
			return false
		}
		by := factor.solve(missing)
		previous, before := slices.Clone(f.strength), vectorLength(missing)
		for part := 1.0; part > 1e-9; part /= 2 {
			for i := range f.strength {
				f.strength[i] = previous[i] + part*by[i]
			}
			if missing = f.missing(score, pairings); vectorLength(missing) < before {
				break
			}
		}
		if !(vectorLength(missing) < before) {
			f.strength = previous
			return before <= 1e3*enough // the rest is rounding
		}
	}
	return false
}

// missing returns how much more every player scored than expected.
func (f *fit) missing(score []float64, pairings []pairing) []float64 {
	m := slices.Clone(score)
	for _, p := range pairings {
		e := expectedScore(f.strength[p.i], f.strength[p.j])
		m[p.i] -= p.games * e
		m[p.j] -= p.games * (1 - e)
	}
	return m
}

// vectorLength returns the length of a vector, or NaN if an element is NaN.
func vectorLength(xs []float64) float64 {
	sum := 0.0
	for _, x := range xs {
		sum += x * x
	}
	return math.Sqrt(sum)
}

// measure finds the covariance of the strengths and the width of intervals. If every
// game is an independent win or loss, the covariance is the inverse of Fisher's information. Ties
// vary less, and games of one deal depend on each other. Then it is the robust covariance,
// from how far the deals were from what was expected.
func (f *fit) measure(index map[string]int, games []Game, pairings []pairing, confidence float64) bool {
	plain := covarianceOf(f.information(pairings))
	if plain == nil {
		return false
	}
	f.covariance, f.method = plain, "bradley-terry"
	f.reach = math.Sqrt2 * math.Erfinv(confidence)
	if !slices.ContainsFunc(games, func(g Game) bool { return g.Deal != "" || (g.Score != 0 && g.Score != 1) }) {
		return true
	}
	f.method = "bradley-terry, robust"
	units := dealUnits(games)
	if len(units) < 2 {
		f.reach = math.Inf(1) // one deal does not show how deals differ
		return true
	}
	f.reach = tQuantile(float64(len(units)-1), confidence)
	robust := sandwich(plain, f.spread(index, games, units))
	f.covariance = robust.times(float64(len(units)) / float64(len(units)-1))
	// With fewer than ten deals for each player the robust covariance is too noisy. Then only
	// its overall size is used, and only to widen intervals.
	if len(units) < 10*len(f.players) {
		f.covariance = plain.times(max(1, f.covariance.trace()/plain.trace()))
	}
	return true
}

// sandwich returns bread times filling times bread.
func sandwich(bread, filling matrix) matrix { return bread.by(filling).by(bread) }

// information returns Fisher's information about the strengths. Games do not determine the mean of all
// strengths, so a constant is added that makes the matrix invertible; covarianceOf removes it again.
func (f *fit) information(pairings []pairing) matrix {
	n := len(f.players)
	info := newMatrix(n)
	for _, p := range pairings {
		e := expectedScore(f.strength[p.i], f.strength[p.j])
		x := p.games * e * (1 - e)
		info[p.i][p.i] += x
		info[p.j][p.j] += x
		info[p.i][p.j] -= x
		info[p.j][p.i] -= x
	}
	for i := range n {
		for j := range n {
			info[i][j] += 1 / float64(n)
		}
	}
	return info
}

// covarianceOf returns the covariance of the strengths around their mean, or nil if the information
// is not invertible.
func covarianceOf(information matrix) matrix {
	factor := information.cholesky()
	if factor == nil {
		return nil
	}
	inv := newMatrix(len(information))
	for i := range inv {
		inv[i][i] = 1
		inv[i] = factor.solve(inv[i])
		for j := range inv[i] {
			inv[i][j] -= 1 / float64(len(inv)) // the inverse of the constant that information adds
		}
	}
	return inv
}

// dealUnits returns the independent units: the indices of games, those of one deal together.
func dealUnits(games []Game) [][]int {
	var units [][]int
	deals := map[string]int{}
	for i, g := range games {
		if at, ok := deals[g.Deal]; ok && g.Deal != "" {
			units[at] = append(units[at], i)
			continue
		}
		deals[g.Deal] = len(units)
		units = append(units, []int{i})
	}
	return units
}

// spread returns the sum over units of the squares of what players scored beyond the
// expected score.
func (f *fit) spread(index map[string]int, games []Game, units [][]int) matrix {
	n := len(f.players)
	sum, beyond := newMatrix(n), make([]float64, n)
	for _, unit := range units {
		var met []int
		for _, g := range unit {
			i, j := index[games[g].A], index[games[g].B]
			d := games[g].Score - expectedScore(f.strength[i], f.strength[j])
			beyond[i] += d
			beyond[j] -= d
			met = append(met, i, j)
		}
		slices.Sort(met)
		met = slices.Compact(met)
		for _, i := range met {
			for _, j := range met {
				sum[i][j] += beyond[i] * beyond[j]
			}
		}
		for _, i := range met {
			beyond[i] = 0
		}
	}
	return sum
}

// expectedScore returns the expected score of strength a against b.
func expectedScore(a, b float64) float64 { return 1 / (1 + math.Exp(b-a)) }

// matrix is a square matrix, by rows.
type matrix [][]float64

func newMatrix(n int) matrix {
	m, all := make(matrix, n), make([]float64, n*n)
	for i := range m {
		m[i] = all[i*n : (i+1)*n : (i+1)*n]
	}
	return m
}

// by returns m times o.
func (m matrix) by(o matrix) matrix {
	out := newMatrix(len(m))
	for i, row := range m {
		for k, x := range row {
			for j, y := range o[k] {
				out[i][j] += x * y
			}
		}
	}
	return out
}

// times returns m with every element multiplied by x.
func (m matrix) times(x float64) matrix {
	out := newMatrix(len(m))
	for i, row := range m {
		for j, y := range row {
			out[i][j] = x * y
		}
	}
	return out
}

// trace returns the sum of the diagonal.
func (m matrix) trace() float64 {
	sum := 0.0
	for i := range m {
		sum += m[i][i]
	}
	return sum
}

// cholesky returns the lower triangle l with l times its transpose equal to m, which is symmetric. It returns nil if m is not
// positive definite, or so nearly singular that no digit of a solution would be right.
func (m matrix) cholesky() matrix {
	rounding := float64(len(m)) * 0x1p-50 // of all differences together
	l := newMatrix(len(m))
	smallest, largest := math.Inf(1), 0.0
	for i := range m {
		for j := range i + 1 {
			sum := m[i][j]
			for k := range j {
				sum -= l[i][k] * l[j][k]
			}
			if i != j {
				l[i][j] = sum / l[j][j]
				continue
			}
			smallest, largest = min(smallest, sum), max(largest, sum)
			if !(smallest > rounding*largest) {
				return nil
			}
			l[i][i] = math.Sqrt(sum)
		}
	}
	return l
}

// solve returns x such that m, a lower triangle, times its transpose times x is b.
func (m matrix) solve(b []float64) []float64 {
	x := make([]float64, len(b))
	for i := range x {
		sum := b[i]
		for k := range i {
			sum -= m[i][k] * x[k]
		}
		x[i] = sum / m[i][i]
	}
	for i := len(x) - 1; i >= 0; i-- {
		sum := x[i]
		for k := i + 1; k < len(x); k++ {
			sum -= m[k][i] * x[k]
		}
		x[i] = sum / m[i][i]
	}
	return x
}
