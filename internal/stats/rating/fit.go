package rating

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
)

// pairing is all games between two players, i before j.
type pairing struct {
	i, j  int
	games float64
}

// fitGroup finds the strengths under which everyone was expected to score what it did in
// games among players. It returns nil where no strengths are found.
func fitGroup(players []string, games []Game, c Config) *fit {
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
	f.climb(score, pairings, c.Prior)
	if !f.finish(score, pairings, c.Prior) || !f.measure(index, games, pairings, c) {
		return nil
	}
	f.settle()
	return f
}

// climb is the MM method of Hunter (2004), which is Zermelo's: from anywhere, every step
// makes the games more likely. It is quick at first and can be slow in the end, which is
// left to finish.
func (f *fit) climb(score []float64, pairings []pairing, prior float64) {
	now, next := make([]float64, len(score)), make([]float64, len(score))
	for i := range now {
		now[i] = 1
	}
	for range 100 {
		step(next, now, score, pairings, prior)
		now, next = next, now
	}
	f.strength = make([]float64, len(score))
	for i, x := range now {
		f.strength[i] = math.Log(x)
	}
}

// settle moves the strengths so that their mean is 0.
func (f *fit) settle() {
	mean := 0.0
	for _, b := range f.strength {
		mean += b / float64(len(f.strength))
	}
	for i := range f.strength {
		f.strength[i] -= mean
	}
}

// step sets next to what everyone's strength would be if the others' were as they are
// now. Half of a prior was won against a player of strength 1.
func step(next, now, score []float64, pairings []pairing, prior float64) {
	for i, x := range now {
		next[i] = prior / (x + 1)
	}
	for _, p := range pairings {
		each := p.games / (now[p.i] + now[p.j])
		next[p.i] += each
		next[p.j] += each
	}
	for i, faced := range next {
		next[i] = (score[i] + prior/2) / faced
	}
}

// finish is Newton's method: near to the end it doubles the digits that are right with
// every step. It says whether everyone is expected to score what it did.
func (f *fit) finish(score []float64, pairings []pairing, prior float64) bool {
	n := len(score)
	missing, enough := f.missing(score, pairings, prior), 1e-12*(1+slices.Max(score))
	for range 100 {
		if size(missing) <= enough {
			return true
		}
		var c mat.Cholesky
		var by mat.VecDense
		if !c.Factorize(f.information(pairings, prior)) || c.SolveVecTo(&by, mat.NewVecDense(n, missing)) != nil {
			return false
		}
		was, before := slices.Clone(f.strength), size(missing)
		for part := 1.0; part > 1e-9; part /= 2 {
			for i := range n {
				f.strength[i] = was[i] + part*by.AtVec(i)
			}
			if missing = f.missing(score, pairings, prior); size(missing) < before {
				break
			}
		}
		if !(size(missing) < before) {
			f.strength = was
			return before <= 1e3*enough // no better can be had than what rounding leaves
		}
	}
	return false
}

// missing returns by how much everyone scored more than expected.
func (f *fit) missing(score []float64, pairings []pairing, prior float64) []float64 {
	m := slices.Clone(score)
	for i, b := range f.strength {
		m[i] += prior * (0.5 - expected(b, 0))
	}
	for _, p := range pairings {
		e := expected(f.strength[p.i], f.strength[p.j])
		m[p.i] -= p.games * e
		m[p.j] -= p.games * (1 - e)
	}
	return m
}

// size is the length of a vector; not a number where one of them is none.
func size(xs []float64) float64 {
	sum := 0.0
	for _, x := range xs {
		sum += x * x
	}
	return math.Sqrt(sum)
}
