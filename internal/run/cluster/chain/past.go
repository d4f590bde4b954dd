package chain

import (
	"context"
	"slices"

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
	// Tried are the episodes of the group that a worker tried last, and neither ended nor gave back. TriedDeaths is how many others tried
	// this group without an entry of it.
	Tried       []int
	TriedDeaths int
	// Group is how many episodes to try at once: half of those at which the last worker died. 0: all that wait.
	Group int

	last    string           // the session of the last claim
	held    bool             // it was not released
	claimed []string         // sessions that claimed it since the last entry, and may have died
	at      map[int][]string // the same since the last entry of each episode that has entries and has not ended
	ended   map[int]bool     // episodes that have
	group   []int            // what was tried last, as it was claimed
	tried   []string         // sessions that TriedDeaths counts
	trier   string           // the last session that tried it; empty once it ended or was given back
}

// see notes who claimed the chain, and neither released it nor made progress.
func (p *Past) see(item any) {
	switch e := item.(type) {
	case *Claim:
		p.claim(e)
	case *Released:
		p.held = false
		p.alive(p.last)
		if p.trier != p.last {
			break
		}
		if p.trier = ""; len(p.tried) == 0 {
			p.Tried = nil
		}
	case *Done:
		p.Done = true
	case *Nth:
		p.Nth = e.Numbers
	case *Seeded:
		for n := range p.at {
			p.at[n] = nil
		}
		*p = Past{Nth: p.Nth, Seeded: true, Number: p.Number, at: p.at, ended: p.ended}
	case *journal.Turned:
		p.progress(e.Episode, false)
	case *journal.Replied:
		p.progress(e.Episode, false)
	case *journal.Ended:
		p.progress(e.Episode, true)
		if e.Outcome.Failed != "" && p.Group == 1 {
			p.Group = 0 // it was this one
		}
	}
}

func (p *Past) claim(c *Claim) {
	p.last, p.held, p.Number = c.Session, true, max(p.Number, c.Number)
	if len(c.Trying) == 0 {
		p.claimed = withSession(p.claimed, c.Session)
		for n, sessions := range p.at {
			p.at[n] = withSession(sessions, c.Session)
		}
		return
	}
	if !slices.Equal(c.Trying, p.group) {
		p.group, p.tried = c.Trying, nil
	}
	p.Tried, p.Group = slices.Clone(c.Trying), len(c.Trying)
	p.trier, p.tried = c.Session, withSession(p.tried, c.Session)
}

// claimedBy notes who claims the chain now. If it is not who tried a group, that one died.
func (p *Past) claimedBy(session string) {
	p.alive(session)
	if p.trier != "" && p.trier != session {
		p.Group = max(1, p.Group/2)
	}
}

// progress notes an entry of an episode: whoever claimed the chain until now did not die where the episode is now, or was the first that
// came there. A reply after the end does not count.
func (p *Past) progress(episode int, ended bool) {
	if p.ended[episode] {
		return
	}
	if p.at == nil {
		p.at, p.ended = map[int][]string{}, map[int]bool{}
	}
	p.claimed, p.at[episode] = nil, nil
	of := slices.Contains(p.Tried, episode)
	if of {
		p.tried = nil
	}
	if !ended {
		return
	}
	delete(p.at, episode)
	if p.ended[episode] = true; !of {
		return
	}
	p.Tried = slices.DeleteFunc(p.Tried, func(n int) bool { return n == episode })
	if len(p.Tried) == 0 {
		p.trier = ""
	}
}

// alive notes that a session has not died: it claims the chain again, or gives it back.
func (p *Past) alive(session string) {
	p.claimed, p.tried = withoutSession(p.claimed, session), withoutSession(p.tried, session)
	for n, sessions := range p.at {
		p.at[n] = withoutSession(sessions, session)
	}
	p.TriedDeaths = len(p.tried)
}

// Deaths returns how many other workers died, or were too slow, while an episode was where it is: they claimed the chain after its last
// entry, and neither wrote one nor gave the chain back. Of an episode without entries nobody knows whether it began: for it, an entry
// of any episode counts. It returns 0 for one that has ended.
func (p *Past) Deaths(episode int) int {
	if sessions, begun := p.at[episode]; begun || p.ended[episode] {
		return len(sessions)
	}
	return len(p.claimed)
}

func withSession(sessions []string, session string) []string {
	return append(withoutSession(sessions, session), session)
}

func withoutSession(sessions []string, session string) []string {
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
