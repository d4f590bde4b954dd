package rating

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distuv"
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
	f.reach = distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(len(units) - 1)}.Quantile((1 + confidence) / 2)
	robust := sandwich(plain, f.spread(index, games, units))
	robust.ScaleSym(float64(len(units))/float64(len(units)-1), robust)
	f.covariance = robust
	// With fewer than ten deals for each player the robust covariance is too noisy. Then only
	// its overall size is used, and only to widen intervals.
	if len(units) < 10*len(f.players) {
		f.covariance = mat.NewSymDense(len(f.players), nil)
		f.covariance.ScaleSym(max(1, mat.Trace(robust)/mat.Trace(plain)), plain)
	}
	return true
}

// sandwich returns bread times filling times bread.
func sandwich(bread, filling *mat.SymDense) *mat.SymDense {
	var half, full mat.Dense
	half.Mul(bread, filling)
	full.Mul(&half, bread)
	n := bread.SymmetricDim()
	s := mat.NewSymDense(n, nil)
	for i := range n {
		for j := i; j < n; j++ {
			s.SetSym(i, j, full.At(i, j))
		}
	}
	return s
}

// information returns Fisher's information about the strengths. Games do not determine the mean of all
// strengths, so a constant is added that makes the matrix invertible; centred removes it again.
func (f *fit) information(pairings []pairing) *mat.SymDense {
	n := len(f.players)
	info := mat.NewSymDense(n, nil)
	add := func(i, j int, x float64) { info.SetSym(i, j, info.At(i, j)+x) }
	for _, p := range pairings {
		e := expected(f.strength[p.i], f.strength[p.j])
		x := p.games * e * (1 - e)
		add(p.i, p.i, x)
		add(p.j, p.j, x)
		add(p.i, p.j, -x)
	}
	for i := range n {
		for j := i; j < n; j++ {
			add(i, j, 1/float64(n))
		}
	}
	return info
}

// inverse returns the covariance of the strengths around their mean, or nil if the information
// is not invertible.
func inverse(information *mat.SymDense) *mat.SymDense {
	var c mat.Cholesky
	var inv mat.SymDense
	if !c.Factorize(information) || c.InverseTo(&inv) != nil {
		return nil
	}
	return centred(&inv)
}

// centred removes the mean from a covariance, in both directions.
func centred(v *mat.SymDense) *mat.SymDense {
	n := v.SymmetricDim()
	means, all := make([]float64, n), 0.0
	for i := range n {
		for j := range n {
			means[i] += v.At(i, j) / float64(n)
		}
		all += means[i] / float64(n)
	}
	out := mat.NewSymDense(n, nil)
	for i := range n {
		for j := i; j < n; j++ {
			out.SetSym(i, j, v.At(i, j)-means[i]-means[j]+all)
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
func (f *fit) spread(index map[string]int, games []Game, units [][]int) *mat.SymDense {
	n := len(f.players)
	sum, beyond := mat.NewSymDense(n, nil), make([]float64, n)
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
		for a, i := range met {
			for _, j := range met[a:] {
				sum.SetSym(i, j, sum.At(i, j)+beyond[i]*beyond[j])
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
