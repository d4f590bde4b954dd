package secrets

import (
	"slices"

	"parley/world"
)

// The modes of scoring.
const (
	Standard  = "standard"  // each conversation pays, most if only the other gave its secret away
	Retained  = "retained"  // collected secrets pay, rare ones more
	Diversity = "diversity" // each different collected secret pays
	Targeted  = "targeted"  // the same, and one of them pays far more
)

// Modes lists the modes there are.
func Modes() []string { return []string{Standard, Retained, Diversity, Targeted} }

// payment is what a mode pays for an event.
type payment struct {
	name   string
	points float64
}

// payments lists the payments of a mode. Retained pays by how rare a secret is.
func payments(mode string) []payment {
	switch mode {
	case Standard:
		return []payment{{"neither", 0}, {"both", 1}, {"only_other", 3}, {"only_own", 0}}
	case Diversity:
		return []payment{{"secret", 2}}
	case Targeted:
		return []payment{{"secret", 1}, {"target", 5}}
	}
	return nil
}

// standings counts what each player gained.
type standings struct {
	mode   string
	own    map[string]float64 // payments that differ from those of the mode
	target int                // whose secret is the target, or -1

	points []float64 // of conversations, in mode standard
	held   [][]int   // whose secrets each collected, in order: in the other modes
}

func newStandings(mode string, own map[string]float64, players, target int) *standings {
	return &standings{mode: mode, own: own, target: target, points: make([]float64, players), held: make([][]int, players)}
}

// pays returns what is paid for an event.
func (l *standings) pays(event string) float64 {
	if points, set := l.own[event]; set {
		return points
	}
	for _, p := range payments(l.mode) {
		if p.name == event {
			return p.points
		}
	}
	return 0
}

// settle counts a conversation of a and b.
func (l *standings) settle(a, b int, aRevealed, bRevealed bool) {
	if l.mode == Standard {
		l.points[a] += l.pays(standardCase(aRevealed, bRevealed))
		l.points[b] += l.pays(standardCase(bRevealed, aRevealed))
		return
	}
	if aRevealed && !slices.Contains(l.held[b], a) {
		l.held[b] = append(l.held[b], a)
	}
	if bRevealed && !slices.Contains(l.held[a], b) {
		l.held[a] = append(l.held[a], b)
	}
}

// standardCase names the result of a conversation for a player.
func standardCase(own, other bool) string {
	switch {
	case own && other:
		return "both"
	case other:
		return "only_other"
	case own:
		return "only_own"
	}
	return "neither"
}

// totals returns the points of all players.
func (l *standings) totals() []float64 {
	if l.mode == Standard {
		return slices.Clone(l.points)
	}
	holders := make([]int, len(l.held)) // of each player's secret; its owner does not count
	for _, held := range l.held {
		for _, owner := range distinct(held) {
			holders[owner]++
		}
	}
	totals := make([]float64, len(l.held))
	for i, held := range l.held {
		for _, owner := range distinct(held) {
			if l.mode == Retained {
				totals[i] += float64(len(l.held)) / float64(holders[owner])
				continue
			}
			totals[i] += l.pays("secret")
			if owner == l.target {
				totals[i] += l.pays("target")
			}
		}
	}
	return totals
}

func distinct(owners []int) []int { return slices.Compact(slices.Sorted(slices.Values(owners))) }

// pointBounds returns the lowest and the highest points of a player who had a conversation. It adds as settle and totals do,
// so that no rounding crosses a bound.
func (p *Params) pointBounds() world.Bounds {
	pays := newStandings(p.Mode, p.Points, 0, -1).pays
	var totals []float64
	switch secrets := min(p.Players-1, p.Rounds); p.Mode {
	case Standard:
		for _, event := range payments(p.Mode) {
			v := pays(event.name)
			totals = append(totals, v, times(v, p.Rounds))
		}
	case Retained:
		totals = []float64{0, times(float64(p.Players), secrets)}
	default:
		secret, target := pays("secret"), pays("target")
		totals = []float64{0, secret, times(secret, secrets), secret + target}
		for before := range secrets { // the target can be any of them
			total := times(secret, before+1) + target
			for range secrets - before - 1 {
				total += secret
			}
			totals = append(totals, total)
		}
	}
	b := world.Bounds{Low: slices.Min(totals), High: slices.Max(totals)}
	if b.Any() { // nothing pays: equal bounds would declare nothing
		return world.Anything()
	}
	return b
}

// times adds a payment n times.
func times(pays float64, n int) (total float64) {
	for range n {
		total += pays
	}
	return total
}
