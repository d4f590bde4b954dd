package chain

import (
	"context"
	"slices"

	"parley/internal/cluster/wire"
)

// Past is what a chain held when it was claimed.
type Past struct {
	// Done means that the lot was played: nothing was claimed.
	Done bool
	// Nth has the Nth of the lot.
	Nth []int
	// Number is that of the new claim. It is higher than that of every claim before.
	Number uint64
	// Seeded means that the chain has its beginning.
	Seeded bool
	// Deaths is how many other workers claimed the chain since the last progress and did not release it: they died, or were too
	// slow. Tried is the episode that the last ones tried alone, and TriedDeaths how many others of them did not
	// release it; -1 and 0 if none did.
	Deaths, Tried, TriedDeaths int

	last           string   // the session of the last claim
	held           bool     // it was not released
	claimed, tried []string // sessions that Deaths and TriedDeaths count
}

// see notes who claimed the chain, and neither released it nor made progress.
func (p *Past) see(item any) {
	switch e := item.(type) {
	case *wire.Claim:
		p.last, p.held, p.Number = e.Session, true, max(p.Number, e.Number)
		if e.Alone && e.Trying != p.Tried {
			p.Tried, p.tried = e.Trying, nil
		}
		switch {
		case !e.Alone:
			p.claimed = append(without(p.claimed, e.Session), e.Session)
		default:
			p.tried = append(without(p.tried, e.Session), e.Session)
		}
	case *wire.Released:
		p.held = false
		p.claimed, p.tried = without(p.claimed, p.last), without(p.tried, p.last)
	case *wire.Done:
		p.Done = true
	case *wire.Nth:
		p.Nth = e.Numbers
	case *wire.Seeded:
		*p = Past{Tried: -1, Nth: p.Nth, Seeded: true, Number: p.Number}
	default:
		p.claimed, p.tried, p.Tried = nil, nil, -1
	}
}

// count counts the others that may have died. Whoever claims again has not.
func (p *Past) count(session string) {
	p.Deaths, p.TriedDeaths = len(without(p.claimed, session)), len(without(p.tried, session))
}

func without(sessions []string, session string) []string {
	return slices.DeleteFunc(sessions, func(s string) bool { return s == session })
}

// lostCalls returns how many calls have no reply because whoever had the chain before did not release it.
func (j *Chain) lostCalls(ctx context.Context, past *Past) (n int) {
	if !past.held {
		return 0
	}
	head, _ := j.entries.Head(ctx) // it never fails
	for _, p := range head.Playing {
		n += p.Open
	}
	return n
}
