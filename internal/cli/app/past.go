// Part fork decides what a fork keeps of a recorded episode: its turns and replies before the turn at which it is
// played in another way.
//
// It plays the world again with the recorded replies, asks nothing and writes nothing.

package app

import (
	"fmt"
	"strconv"
	"strings"

	"parley/journal"
	"parley/world"
)

// Past is the recorded part of one attempt at an episode.
type Past struct {
	// Last is the last turn of the first strand that made calls or forked. -1: no turn did.
	Last    int
	replies map[position][]*journal.Replied // by index; nil where there is no reply
}

// position is a turn of a strand.
type position struct {
	strand string
	turn   int
}

func (p position) String() string { return p.strand + strconv.Itoa(p.turn) }

// journalTurn returns the position in episode 0.
func (p position) journalTurn() journal.Turn { return journal.Turn{Strand: p.strand, Turn: p.turn} }

// readPast collects the entries of an attempt.
func readPast(entries []journal.Entry, attempt int) *Past {
	p := &Past{Last: -1, replies: map[position][]*journal.Replied{}}
	for _, e := range entries {
		switch e := e.(type) {
		case *journal.Turned:
			if e.Attempt == attempt {
				p.addTurn(e)
			}
		case *journal.Replied:
			replies := p.replies[position{e.Strand, e.Turn.Turn}]
			if e.Attempt == attempt && e.Index >= 0 && e.Index < len(replies) {
				replies[e.Index] = e
			}
		}
	}
	return p
}

func (p *Past) addTurn(e *journal.Turned) {
	p.replies[position{e.Strand, e.Turn.Turn}] = make([]*journal.Replied, max(0, e.Calls))
	turn := e.Turn.Turn
	if e.Strand != "" {
		// The path of every other strand begins with the first strand's turn: 4.2/…
		number, _, _ := strings.Cut(e.Strand, ".")
		turn, _ = strconv.Atoi(number)
	} else if e.Calls == 0 {
		return // the world wrote notes and ended
	}
	p.Last = max(p.Last, turn)
}

// Replay plays w with the recorded replies up to a turn of the first strand. It returns the turns and copies of the
// replies as entries of episode 0. It fails if w does not reach the turn, or does not ask the same seats for the same
// things as recorded. The engine cannot check that of copies.
func (p *Past) Replay(w world.World, deal world.Deal, turn int) ([]journal.Entry, error) {
	r := &replay{Past: p}
	if err := r.strand(world.Begin(w, deal), turn); err != nil {
		return nil, err
	}
	return r.entries, nil
}

// phase is a phase of an episode: its name, and the turn of the first strand that begins it.
type phase struct {
	Name string
	Turn int
}

// Is reports whether a person means the phase by a name. Case, spaces and hyphens do not count, and the number of a phase
// such as round 2 is enough.
func (p phase) Is(name string) bool {
	plain := func(s string) string { return strings.NewReplacer(" ", "", "-", "").Replace(strings.ToLower(s)) }
	fields := strings.Fields(p.Name)
	return plain(name) == plain(p.Name) || len(fields) == 2 && fields[1] == strings.TrimSpace(name)
}

// Phases plays w with the recorded replies as far as there are any, and returns the phases that it begins. The error says
// why it could not be played farther, unless it was played to its end.
func (p *Past) Phases(w world.World, deal world.Deal) ([]phase, error) {
	r := &replay{Past: p}
	err := r.strand(world.Begin(w, deal), toTheEnd)
	return r.phases, err
}

// replay is a world that is played again.
type replay struct {
	*Past
	entries []journal.Entry
	phases  []phase // of the first strand
}

// toTheEnd is the turn up to which forked strands are played.
const toTheEnd = -1

// strand plays s up to a turn.
func (r *replay) strand(s *world.Strand, until int) error {
	defer s.Stop()
	var replies []world.Reply
	for {
		t := s.Next(replies)
		replies = nil
		at := position{s.Path, t.Number}
		if s.Path == "" {
			for _, name := range t.Phases {
				r.phases = append(r.phases, phase{name, t.Number})
			}
		}
		switch {
		case t.Abort != nil:
			return t.Abort
		case t.Panic != "":
			return fmt.Errorf("at turn %s the world panics: %s", at, t.Panic)
		case t.Number == until:
			stop(t.Forks)
			return nil // the world writes the notes of this turn again when the fork is played
		}
		if len(t.Notes) > 0 || len(t.Calls) > 0 {
			r.entries = append(r.entries, &journal.Turned{Turn: at.journalTurn(), Calls: len(t.Calls), Notes: t.Notes})
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

func (r *replay) forks(forks []*world.Strand) error {
	defer stop(forks) // also those that an error leaves unplayed
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

// copy copies the recorded replies to the calls of a turn.
func (r *replay) copy(at position, calls []world.Call) ([]world.Reply, error) {
	recorded, ok := r.replies[at]
	if !ok || len(recorded) != len(calls) {
		return nil, fmt.Errorf("turn %s now makes %d calls, and made %d", at, len(calls), len(recorded))
	}
	replies := make([]world.Reply, len(calls))
	for i, c := range calls {
		switch reply := recorded[i]; {
		case reply == nil:
			return nil, fmt.Errorf("call %s:%d has no reply", at, i)
		case reply.Seat != c.Seat || reply.Label != c.Label || (reply.Act != nil) != (c.Act != nil):
			return nil, fmt.Errorf("call %s:%d is now %s of %s, and was %s of %s", at, i, c.Label, c.Seat, reply.Label, reply.Seat)
		default:
			copied := *reply
			copied.Turn, copied.Copied = at.journalTurn(), true
			r.entries = append(r.entries, &copied)
			replies[i] = reply.Reply()
		}
	}
	return replies, nil
}
