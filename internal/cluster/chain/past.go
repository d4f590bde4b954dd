package chain

import (
	"context"
	"slices"

	"parley/internal/cluster/wire"
	"parley/journal"
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
	// Deaths is how many other workers died, or were too slow, with an episode of the lot where it is now: they had claimed the chain
	// when the episode had its last entry, or later, and did not release it. It is that of the episode with the most. Of episodes
	// without entries nobody knows whether they began: for them, an entry of any episode counts.
	Deaths int
	// Trying means that a worker tried an episode alone, and neither ended it nor released the chain. Tried is that
	// episode, and TriedDeaths how many others tried it without an entry of it, and did not release it; -1 and 0 if none did.
	Trying             bool
	Tried, TriedDeaths int

	last    string           // the session of the last claim
	held    bool             // it was not released
	claimed []string         // sessions that may have died since the last entry
	at      map[int][]string // the same for each episode that has entries and has not ended
	ended   map[int]bool     // episodes that have
	tried   []string         // sessions that TriedDeaths counts
}

// see notes who claimed the chain, and neither released it nor made progress.
func (p *Past) see(item any) {
	switch e := item.(type) {
	case *wire.Claim:
		p.claim(e)
	case *wire.Released:
		p.held = false
		p.claimed, p.tried = without(p.claimed, p.last), without(p.tried, p.last)
		for n, sessions := range p.at {
			p.at[n] = without(sessions, p.last)
		}
		p.Trying = len(p.tried) > 0
	case *wire.Done:
		p.Done = true
	case *wire.Nth:
		p.Nth = e.Numbers
	case *wire.Seeded:
		for n := range p.at {
			p.at[n] = nil
		}
		*p = Past{Tried: -1, Nth: p.Nth, Seeded: true, Number: p.Number, at: p.at, ended: p.ended}
	case *journal.Turned:
		p.progress(e.Episode, false)
	case *journal.Replied:
		p.progress(e.Episode, false)
	case *journal.Ended:
		p.progress(e.Episode, true)
	}
}

func (p *Past) claim(c *wire.Claim) {
	p.last, p.held, p.Number = c.Session, true, max(p.Number, c.Number)
	if !c.Alone {
		p.claimed = with(p.claimed, c.Session)
		for n, sessions := range p.at {
			p.at[n] = with(sessions, c.Session)
		}
		return
	}
	if c.Trying != p.Tried {
		p.Tried, p.tried = c.Trying, nil
	}
	p.Trying, p.tried = true, with(p.tried, c.Session)
}

// progress notes an entry of an episode. Only whoever wrote it can die where the episode is now. A reply after the end does not count.
func (p *Past) progress(episode int, ended bool) {
	if p.ended[episode] {
		return
	}
	if p.at == nil {
		p.at, p.ended = map[int][]string{}, map[int]bool{}
	}
	p.claimed = nil
	if p.held {
		p.claimed = []string{p.last}
	}
	p.at[episode] = slices.Clone(p.claimed)
	if episode == p.Tried {
		p.tried = nil
	}
	if !ended {
		return
	}
	delete(p.at, episode)
	if p.ended[episode] = true; episode == p.Tried {
		p.Tried, p.Trying = -1, false
	}
}

// count counts the others that may have died. Whoever claims again has not.
func (p *Past) count(session string) {
	p.Deaths, p.TriedDeaths = len(without(p.claimed, session)), len(without(p.tried, session))
	for _, sessions := range p.at {
		p.Deaths = max(p.Deaths, len(without(sessions, session)))
	}
}

func with(sessions []string, session string) []string {
	return append(without(sessions, session), session)
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
