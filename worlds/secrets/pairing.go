package secrets

import (
	"cmp"
	"math/rand/v2"
	"slices"
)

// The methods of pairing.
const (
	pairRandom = "random"
	pairRobin  = "round-robin"
	pairSwiss  = "swiss"
)

// pairing makes the pairs of each round. Everybody talks once a round; if the number of
// players is odd, one who sat out least often sits out. The player who has opened fewer
// conversations opens.
type pairing struct {
	method string
	rand   *rand.Rand
	order  []int // of the players: for the schedule, and for ties
	round  int   // how many rounds were paired

	met         [][]int // how often two players talked
	sat, opened []int
}

// newPairing returns the pairing of a game.
func newPairing(method string, players int, r *rand.Rand) *pairing {
	p := &pairing{method: method, rand: r, met: make([][]int, players), sat: make([]int, players), opened: make([]int, players)}
	for i := range players {
		p.order = append(p.order, i)
		p.met[i] = make([]int, players)
	}
	if method == pairSwiss {
		p.shuffle()
	}
	return p
}

// shuffle changes the order of the players. Two players keep theirs: the first opens first.
func (p *pairing) shuffle() {
	if len(p.order) > 2 {
		p.rand.Shuffle(len(p.order), func(i, j int) { p.order[i], p.order[j] = p.order[j], p.order[i] })
	}
}

// next returns the pairs of the next round, the player who opens first in each, and the
// player who sits out, or -1.
func (p *pairing) next(points []float64) (pairs [][2]int, sits int) {
	if p.method == pairSwiss {
		pairs, sits = p.swiss(points)
	} else {
		pairs, sits = p.circle()
	}
	p.round++
	if sits >= 0 {
		p.sat[sits]++
	}
	for i, m := range pairs {
		if p.opened[m[1]] < p.opened[m[0]] {
			pairs[i] = [2]int{m[1], m[0]}
		}
		p.opened[pairs[i][0]]++
		p.met[m[0]][m[1]]++
		p.met[m[1]][m[0]]++
	}
	return pairs, sits
}

// circle is the schedule in which everybody meets everybody once before two players meet
// again: one player stays, the others rotate. The random method shuffles it in every cycle.
func (p *pairing) circle() (pairs [][2]int, sits int) {
	n := len(p.order) + len(p.order)%2
	step := p.round % (n - 1)
	if step == 0 && p.method == pairRandom {
		p.shuffle()
	}
	at := func(slot int) int { // the player there; with an odd number one slot is empty
		if slot > 0 {
			slot = 1 + (slot-1+step)%(n-1)
		}
		if slot == len(p.order) {
			return -1
		}
		return p.order[slot]
	}
	sits = -1
	for i := range n / 2 {
		switch a, b := at(i), at(n-1-i); {
		case a < 0:
			sits = b
		case b < 0:
			sits = a
		case i > 0 && i%2 == 0 || i == 0 && step%2 == 1: // so that everybody opens every other time
			pairs = append(pairs, [2]int{b, a})
		default:
			pairs = append(pairs, [2]int{a, b})
		}
	}
	return pairs, sits
}

// swiss pairs each player with the next by points, and then exchanges partners where two have
// met more often than necessary.
func (p *pairing) swiss(points []float64) (pairs [][2]int, sits int) {
	rank := slices.Clone(p.order)
	slices.SortStableFunc(rank, func(a, b int) int { return cmp.Compare(points[b], points[a]) })
	sits = -1
	if len(rank)%2 == 1 {
		least := slices.Min(p.sat)
		for i, a := range slices.Backward(rank) {
			if p.sat[a] == least {
				sits = a
				rank = slices.Delete(rank, i, i+1)
				break
			}
		}
	}
	for p.exchange(rank) {
	}
	for i := 0; i < len(rank); i += 2 {
		pairs = append(pairs, [2]int{rank[i], rank[i+1]})
	}
	return pairs, sits
}

// exchange improves one pair of rank, in which each two players are a pair: a pair that has met
// before exchanges a partner with the nearest pair that reduces the cost. It reports whether it
// found one. Each exchange lowers the sum of the squares of meetings, so exchanging ends.
func (p *pairing) exchange(rank []int) bool {
	cost := func(i, j int) int { return p.met[rank[i]][rank[j]] * p.met[rank[i]][rank[j]] }
	for i := 0; i < len(rank); i += 2 {
		if cost(i, i+1) == 0 {
			continue
		}
		for distance := 2; distance < len(rank); distance += 2 {
			for _, j := range []int{i + distance, i - distance} {
				if j < 0 || j >= len(rank) {
					continue
				}
				now := cost(i, i+1) + cost(j, j+1)
				if cost(i, j)+cost(i+1, j+1) < now {
					rank[i+1], rank[j] = rank[j], rank[i+1]
					return true
				}
				if cost(i, j+1)+cost(i+1, j) < now {
					rank[i+1], rank[j+1] = rank[j+1], rank[i+1]
					return true
				}
			}
		}
	}
	return false
}
