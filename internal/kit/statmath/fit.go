package statmath

import (
	"cmp"
	"math"
	"slices"
)

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
	f.climb(score, pairings)
	if !f.finish(score, pairings) || !f.measure(index, games, pairings, confidence) {
		return nil
	}
	f.centre()
	return f
}

// climb approaches the strengths by the MM method of Hunter (2004), which is Zermelo's: every step
// makes the games more likely, whatever the start. It is fast at first and slow near the end, so
// finish takes over there.
func (f *fit) climb(score []float64, pairings []pairing) {
	now, next := make([]float64, len(score)), make([]float64, len(score))
	for i := range now {
		now[i] = 1
	}
	for range 100 {
		step(next, now, score, pairings)
		now, next = next, now
	}
	f.strength = make([]float64, len(score))
	for i, x := range now {
		f.strength[i] = math.Log(x)
	}
}

// centre moves the strengths so that their mean is 0.
func (f *fit) centre() {
	mean := 0.0
	for _, b := range f.strength {
		mean += b / float64(len(f.strength))
	}
	for i := range f.strength {
		f.strength[i] -= mean
	}
}

// step sets next to the strength of every player, given the current strengths of the others.
func step(next, now, score []float64, pairings []pairing) {
	clear(next)
	for _, p := range pairings {
		each := p.games / (now[p.i] + now[p.j])
		next[p.i] += each
		next[p.j] += each
	}
	for i, faced := range next {
		next[i] = score[i] / faced
	}
}

// finish refines the strengths by Newton's method, which doubles the correct digits with
// every step near the solution. It reports whether the expected scores match the actual ones.
func (f *fit) finish(score []float64, pairings []pairing) bool {
	n := len(score)
	missing, enough := f.missing(score, pairings), 1e-12*(1+slices.Max(score))
	for range 100 {
		if size(missing) <= enough {
			return true
		}
		factor := f.information(pairings).cholesky()
		if factor == nil {
			return false
		}
		by := factor.solve(missing)
		previous, before := slices.Clone(f.strength), size(missing)
		for part := 1.0; part > 1e-9; part /= 2 {
			for i := range n {
				f.strength[i] = previous[i] + part*by[i]
			}
			if missing = f.missing(score, pairings); size(missing) < before {
				break
			}
		}
		if !(size(missing) < before) {
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
		e := expected(f.strength[p.i], f.strength[p.j])
		m[p.i] -= p.games * e
		m[p.j] -= p.games * (1 - e)
	}
	return m
}

// size returns the length of a vector, or NaN if an element is NaN.
func size(xs []float64) float64 {
	sum := 0.0
	for _, x := range xs {
		sum += x * x
	}
	return math.Sqrt(sum)
}
