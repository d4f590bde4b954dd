package secrets

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

// TestPairing checks every method with few and many players: everybody talks once a round, all
// players sit out and open about equally often, and two players meet again only if they must.
func TestPairing(t *testing.T) {
	t.Parallel()
	for _, how := range oneOf("Pairing") {
		for _, n := range []int{2, 3, 4, 5, 6, 7, 8, 13, 20, 100} {
			t.Run(fmt.Sprint(how, n), func(t *testing.T) {
				t.Parallel()
				r := rand.New(rand.NewPCG(uint64(n), 1))
				p := newPairing(how, n, r)
				cycle := n - 1 + n%2
				points := make([]float64, n)
				for round := range 2*cycle + 1 {
					pairs, sits := p.next(points)
					checkRound(t, n, pairs, sits)
					for _, m := range pairs {
						points[m[r.IntN(2)]] += float64(r.IntN(4))
					}
					low, high := spread(p.met)
					// A Swiss draw follows the points: late in a cycle two players may meet again.
					if how != pairSwiss && (high > round/cycle+1 || low < (round+1)/cycle) {
						t.Errorf("round %d: pairs met between %d and %d times", round+1, low, high)
					}
					if how == pairSwiss && round < (n-1)/2 && high > 1 {
						t.Errorf("round %d of a Swiss draw: two players met %d times", round+1, high)
					}
				}
				if slices.Max(p.sat)-slices.Min(p.sat) > 1 {
					t.Errorf("times that each sat out: %v", p.sat)
				}
				if slices.Max(p.opened)-slices.Min(p.opened) > 3 {
					t.Errorf("times that each opened: %v", p.opened)
				}
			})
		}
	}
}

// checkRound checks that each player is in one pair, and that one sits out if n is odd.
func checkRound(t *testing.T, n int, pairs [][2]int, sits int) {
	t.Helper()
	var all []int
	for _, m := range pairs {
		all = append(all, m[0], m[1])
	}
	if (sits >= 0) != (n%2 == 1) {
		t.Errorf("%d players: %d sits out", n, sits)
	}
	if sits >= 0 {
		all = append(all, sits)
	}
	slices.Sort(all)
	for i := range n {
		if len(all) != n || all[i] != i {
			t.Fatalf("%d players: pairs %v, and %d sits out", n, pairs, sits)
		}
	}
}

// spread returns the smallest and the largest number of times that two players met.
func spread(met [][]int) (low, high int) {
	low = met[0][1]
	for a, row := range met {
		for b, times := range row {
			if a != b {
				low, high = min(low, times), max(high, times)
			}
		}
	}
	return low, high
}

// TestSwissFollowsThePoints checks that players with similar points meet.
func TestSwissFollowsThePoints(t *testing.T) {
	t.Parallel()
	p := newPairing(pairSwiss, 5, rand.New(rand.NewPCG(1, 1)))
	pairs, sits := p.next([]float64{1, 9, 3, 8, 2})
	if sits != 0 || !reflect.DeepEqual(pairs, [][2]int{{1, 3}, {2, 4}}) {
		t.Errorf("%v, %d sits out", pairs, sits)
	}
	// Those pairs have met, so the first meets the third, and another player sits out.
	pairs, sits = p.next([]float64{1, 9, 3, 8, 2})
	if sits != 4 || len(pairs) != 2 || !slices.Contains([]int{pairs[0][0], pairs[0][1]}, 1) || !slices.Contains([]int{pairs[0][0], pairs[0][1]}, 2) {
		t.Errorf("%v, %d sits out", pairs, sits)
	}
}

// TestPairingIsDrawn checks that random pairs differ between seeds, that round-robin is always the
// same, and that the first of two players opens.
func TestPairingIsDrawn(t *testing.T) {
	t.Parallel()
	draw := func(how string, n int, seed uint64) [][2]int {
		pairs, _ := newPairing(how, n, rand.New(rand.NewPCG(seed, 0))).next(make([]float64, n))
		return pairs
	}
	drawn := map[string]bool{}
	for seed := range uint64(50) {
		drawn[fmt.Sprint(draw(pairRandom, 6, seed))] = true
		if !reflect.DeepEqual(draw(pairRobin, 6, seed), draw(pairRobin, 6, 0)) {
			t.Error("round-robin depends on the seed")
		}
		for _, how := range oneOf("Pairing") {
			if pairs := draw(how, 2, seed); pairs[0] != [2]int{0, 1} {
				t.Errorf("%s: two players: %v", how, pairs)
			}
		}
	}
	if len(drawn) < 20 {
		t.Errorf("only %d different draws", len(drawn))
	}
}
