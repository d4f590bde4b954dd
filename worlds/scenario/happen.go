package scenario

import (
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strconv"

	"parley/worlds/scenario/script"
)

// happening returns the events of a turn, in the order of the script, and marks those
// that happen once. Conditions use the metrics that are known when the turn is told.
func (g *game) happening(turn int) []recordEvent {
	var all []recordEvent
	for i, e := range g.Events {
		if g.fired[i] && e.Once || !g.due(e, turn) {
			continue
		}
		g.fired[i] = true
		all = append(all, recordEvent{Turn: turn, Name: e.Name, Type: e.Type, Description: e.Description})
	}
	return all
}

// due reports whether an event happens in a turn.
func (g *game) due(e script.Event, turn int) bool {
	if len(e.Range) == 2 && (turn < e.Range[0] || turn > e.Range[1]) {
		return false
	}
	if len(e.Conditions) > 0 && !g.holds(e.Conditions) {
		return false
	}
	if p := e.Probability; p != nil && g.chance(e.Name, turn) >= *p {
		return false
	}
	switch e.Type {
	case script.Trend:
		return (turn-e.Range[0])%e.Frequency == 0
	case script.Scheduled:
		return slices.Contains(e.Turns, turn)
	}
	return true
}

// swan reports whether an unforeseen event happens in a turn.
func (g *game) swan(turn int) bool {
	return g.BlackSwan > 0 && g.chance("", turn) < g.BlackSwan
}

// chance returns a number from 0 to 1 for one event in one turn. It depends only on the deal, the
// event's name and the turn: with the same deal an event has the same luck,
// whatever else varies.
func (g *game) chance(event string, turn int) float64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(event + "\x00" + strconv.Itoa(turn)))
	return rand.New(rand.NewPCG(g.luck, h.Sum64())).Float64()
}
