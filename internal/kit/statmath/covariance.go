package statmath

import (
	"math"
	"slices"
)

// measure finds the covariance of the strengths and the width of intervals. If every
// game is an independent win or loss, the covariance is the inverse of Fisher's information. Ties
// vary less, and games of one deal depend on each other. Then it is the robust covariance,
// from how far the deals were from what was expected.
func (f *fit) measure(index map[string]int, games []Game, pairings []pairing, confidence float64) bool {
	plain := inverse(f.information(pairings))
	if plain == nil {
		return false
	}
	f.covariance, f.method = plain, "bradley-terry"
	f.reach = math.Sqrt2 * math.Erfinv(confidence)
	if !slices.ContainsFunc(games, func(g Game) bool { return g.Deal != "" || (g.Score != 0 && g.Score != 1) }) {
		return true
	}
	f.method = "bradley-terry, robust"
	units := independent(games)
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
// strengths, so a constant is added that makes the matrix invertible; centred removes it again.
func (f *fit) information(pairings []pairing) matrix {
	n := len(f.players)
	info := newMatrix(n)
	for _, p := range pairings {
		e := expected(f.strength[p.i], f.strength[p.j])
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

// inverse returns the covariance of the strengths around their mean, or nil if the information
// is not invertible.
func inverse(information matrix) matrix {
	factor := information.cholesky()
	if factor == nil {
		return nil
	}
	inv := newMatrix(len(information))
	for i := range inv {
		inv[i][i] = 1
		inv[i] = factor.solve(inv[i])
	}
	return centred(inv)
}

// centred removes the mean from a covariance, in both directions.
func centred(v matrix) matrix {
	n := len(v)
	means, all := make([]float64, n), 0.0
	for i := range n {
		for j := range n {
			means[i] += v[i][j] / float64(n)
		}
		all += means[i] / float64(n)
	}
	out := newMatrix(n)
	for i := range n {
		for j := range n {
			out[i][j] = v[i][j] - means[i] - means[j] + all
		}
	}
	return out
}

// independent returns the independent units: the indices of games, those of one deal together.
func independent(games []Game) [][]int {
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
			d := games[g].Score - expected(f.strength[i], f.strength[j])
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

// expected returns the expected score of strength a against b.
func expected(a, b float64) float64 { return 1 / (1 + math.Exp(b-a)) }
