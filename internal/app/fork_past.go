package app

import (
	"fmt"
	"strconv"
	"strings"

	"parley/internal/config"
	"parley/internal/view/optional"
	"parley/journal"
	"parley/world"
)

// past is what was recorded of an attempt at an episode.
type past struct {
	// last is the last turn of the first strand that asked or forked; -1: none.
	last    int
	replies map[place][]*journal.Replied // by index; nil where there is none
}

// place is a turn of a strand.
type place struct {
	strand string
	turn   int
}

func (p place) String() string { return p.strand + strconv.Itoa(p.turn) }

func newPast(entries []journal.Entry, attempt int) *past {
	p := &past{last: -1, replies: map[place][]*journal.Replied{}}
	for _, e := range entries {
		switch e := e.(type) {
		case *journal.Turned:
			if e.Attempt == attempt {
				p.turned(e)
			}
		case *journal.Replied:
			at := p.replies[place{e.Strand, e.Turn.Turn}]
			if e.Attempt == attempt && e.Index >= 0 && e.Index < len(at) {
				at[e.Index] = e
			}
		}
	}
	return p
}

func (p *past) turned(e *journal.Turned) {
	p.replies[place{e.Strand, e.Turn.Turn}] = make([]*journal.Replied, max(0, e.Calls))
	turn := e.Turn.Turn
	if e.Strand != "" {
		// The first strand's turn is what the path of every strand begins with: 4.2/…
		number, _, _ := strings.Cut(e.Strand, ".")
		turn, _ = strconv.Atoi(number)
	} else if e.Calls == 0 {
		return // it only noted, and was done
	}
	p.last = max(p.last, turn)
}

// refold plays the world of spec with what was recorded up to f.Turn, and returns that as
// entries of episode 0 whose replies are copies. It checks what the engine cannot check
// of copies, and does so before anything is written: that the same seats are asked for
// the same, and that the world comes to the turn at all.
func (f Fork) refold(plan *config.Plan, spec world.Spec, p *past) ([]journal.Entry, error) {
	params, err := plan.Kind.Read(spec.Params)
	if err != nil {
		return nil, fmt.Errorf("app: fork: %w", err)
	}
	lineup := world.Lineup{}
	for seat, name := range spec.Lineup {
		lineup[seat], _ = plan.Agent(name) // config has seen to it that there is one
	}
	var w world.World
	err = optional.Call(plan.Kind, "World", func() error { w, err = plan.Kind.World(params, lineup); return err })
	if err != nil {
		return nil, usageError{fmt.Errorf("fork of %s, episode %d: %w", f.From, f.Episode, err)}
	}
	r := &refold{past: p}
	if err := r.strand(world.Begin(w, world.Deal{Seed: plan.Seed, Number: spec.Deal}), f.Turn); err != nil {
		return nil, f.refuse("what was played before turn %d does not fit the changed plan: %w: fork at an earlier turn, or change less", f.Turn, err)
	}
	return r.out, nil
}

// refold is a world being played again.
type refold struct {
	*past
	out []journal.Entry
}

// toTheEnd is the turn that a forked strand is played up to.
const toTheEnd = -1

// strand plays s up to a turn, and no further.
func (r *refold) strand(s *world.Strand, until int) error {
	defer s.Stop()
	var replies []world.Reply
	for {
		t := s.Next(replies)
		replies = nil
		at := place{s.Path, t.Number}
		switch {
		case t.Panic != "":
			return fmt.Errorf("at turn %s the world panics: %s", at, t.Panic)
		case t.Number == until:
			stop(t.Forks)
			return nil // what it has noted is noted again when it is played on
		}
		if len(t.Notes) > 0 || len(t.Calls) > 0 {
			r.out = append(r.out, &journal.Turned{Turn: at.ofEpisode0(), Calls: len(t.Calls), Notes: t.Notes})
		}
		switch {
		case t.Done && until == toTheEnd:
			return nil
		case t.Done:
			return fmt.Errorf("it now ends at turn %s", at)
		case len(t.Forks) > 0:
			if err := r.forks(t.Forks); err != nil {
				return err
			}
		default:
			var err error
			if replies, err = r.copy(at, t.Calls); err != nil {
				return err
			}
		}
	}
}

func (r *refold) forks(forks []*world.Strand) error {
	defer stop(forks) // those too that are not come to
	for _, s := range forks {
		if err := r.strand(s, toTheEnd); err != nil {
			return err
		}
	}
	return nil
}

func stop(strands []*world.Strand) {
	for _, s := range strands {
		s.Stop()
	}
}

// copy takes over the replies to the calls of a turn.
func (r *refold) copy(at place, calls []world.Call) ([]world.Reply, error) {
	was, ok := r.replies[at]
	if !ok || len(was) != len(calls) {
		return nil, fmt.Errorf("turn %s now makes %d calls, and made %d", at, len(calls), len(was))
	}
	replies := make([]world.Reply, len(calls))
	for i, c := range calls {
		switch rep := was[i]; {
		case rep == nil:
			return nil, fmt.Errorf("call %s:%d has no reply", at, i)
		case rep.Seat != c.Seat || rep.Label != c.Label || (rep.Act != nil) != (c.Act != nil):
			return nil, fmt.Errorf("call %s:%d is now %s of %s, and was %s of %s", at, i, c.Label, c.Seat, rep.Label, rep.Seat)
		default:
			copied := *rep
			copied.Turn, copied.Copied = at.ofEpisode0(), true
			r.out = append(r.out, &copied)
			replies[i] = rep.Reply()
		}
	}
	return replies, nil
}

func (p place) ofEpisode0() journal.Turn { return journal.Turn{Strand: p.strand, Turn: p.turn} }
