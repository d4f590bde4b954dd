package secrets

import "parley/world"

// Standard is the mode in which only what the other gave away pays, and most if one
// gave nothing.
const Standard = "standard"

// Modes lists the modes there are.
func Modes() []string { return []string{Standard} }

// rules are what a mode pays, from one player's side.
type rules struct {
	neither, both, onlyOther, onlyOwn float64
}

// rulesOf returns the rules of a mode.
func rulesOf(mode string) rules {
	if mode == Standard {
		return rules{neither: 0, both: 1, onlyOther: 3, onlyOwn: 0}
	}
	return rules{} // none other passes the check of params
}

// points are what a player gets who did or did not reveal, against one who did or did not.
func (r rules) points(own, other bool) float64 {
	switch {
	case own && other:
		return r.both
	case other:
		return r.onlyOther
	case own:
		return r.onlyOwn
	default:
		return r.neither
	}
}

// Record is the data of an outcome.
type Record struct {
	Mode string `json:"mode"`
	// Secrets is seat to word.
	Secrets map[string]string `json:"secrets"`
	// Messages is how many were said, and Silences how many turns passed without one.
	Messages int `json:"messages"`
	Silences int `json:"silences,omitempty"`
	// Reveals are the first of each seat, in the order they happened.
	Reveals []Reveal `json:"reveals"`
}

// Reveal is when a player first gave its secret away.
type Reveal struct {
	Seat    string `json:"seat"`
	Message int    `json:"message"` // its number, from 1
	How     string `json:"how"`     // said or spelled
}

// outcome scores a conversation. One that did not take place has no scores: that nobody
// answered is not a secret kept.
func (t *talk) outcome(mode string) world.Outcome {
	rec := Record{
		Mode: mode, Secrets: map[string]string{}, Messages: len(t.turns) - t.silences, Silences: t.silences,
		Reveals: append([]Reveal{}, t.reveals...),
	}
	o := world.Outcome{Failed: t.failed}
	for i, p := range t.players {
		rec.Secrets[p.seat] = p.secret
		if t.failed == "" {
			other := t.players[1-i]
			o.Scores = append(o.Scores,
				world.Score{Seat: p.seat, Name: "points", Value: t.rules.points(p.revealed, other.revealed)},
				world.Score{Seat: p.seat, Name: "revealed", Value: number(p.revealed)},
				world.Score{Seat: p.seat, Name: "obtained", Value: number(other.revealed)},
				world.Score{Seat: p.seat, Name: "optimal", Value: number(other.revealed && !p.revealed)},
			)
		}
	}
	o.Data = rec
	return o
}

func number(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
