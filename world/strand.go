package world

import (
	"fmt"
	"iter"
	"runtime/debug"
)

// Strand is one line of play of an episode, seen from outside: whoever drives a world
// resumes its strands and gives them replies. It is a coroutine: nothing runs but in
// Next, and Next may be called from any goroutine, one at a time for a whole episode.
type Strand struct {
	// Path names the strand within its episode: "" is the first, "4.2/" the third strand of
	// the fork that is turn 4 of the first.
	Path string

	deal    Deal
	asks    *Unanswered // of the whole episode; acts are not counted
	next    func() (struct{}, bool)
	stop    func()
	turn    Turn
	replies []Reply
	turns   int  // that ended: the number of the one being played
	playing bool // in Next
}

// Turn is what a strand does between two rests: it notes, and then asks, or forks, or
// is done.
type Turn struct {
	Number int // from 0, in its strand
	Notes  []Note
	// Calls are what it waits for.
	Calls []Call
	// Forks are the strands it waits for.
	Forks []*Strand
	// Done means that it has ended. Outcome is then set for the first strand of an episode.
	Done    bool
	Outcome Outcome
	// Panic is what the world panicked with, and Stack where.
	Panic string
	Stack string
}

// Begin returns the first strand of an episode of w.
func Begin(w World, deal Deal) *Strand {
	asks := &Unanswered{}
	return newStrand("", deal, asks, func(t *Table) Outcome { return asks.settle(w.Play(t)) })
}

func newStrand(path string, deal Deal, asks *Unanswered, play func(*Table) Outcome) *Strand {
	s := &Strand{Path: path, deal: deal, asks: asks}
	s.next, s.stop = iter.Pull(func(yield func(struct{}) bool) {
		returned := false
		defer func() {
			switch p := recover().(type) {
			case nil:
				if !returned { // Pull passes a Goexit on to whoever drives the strand, but not one that panics
					panic(exited{string(debug.Stack())})
				}
			case stopped:
			default:
				s.turn.Panic, s.turn.Stack = fmt.Sprint(p), string(debug.Stack())
			}
		}()
		s.turn.Outcome = play(&Table{strand: s, yield: yield})
		returned = true
	})
	return s
}

// exited is what a strand panics with whose world ended its goroutine.
type exited struct{ stack string }

// exit takes it for a panic of the world. It is to be deferred.
func (s *Strand) exit() {
	switch p := recover().(type) {
	case nil:
	case exited:
		s.turn.Panic, s.turn.Stack = "the world called runtime.Goexit, or Fatal of a test", p.stack
	default:
		panic(p)
	}
}

// Next plays on until the strand rests again. replies answer the calls of the turn
// before, in their order; after a fork they are nil, and the forks must be done.
func (s *Strand) Next(replies []Reply) Turn {
	s.turn = Turn{}
	s.replies = replies
	s.playing = true
	if !s.resume() {
		s.turn.Done = true // it ended, or was stopped before
	}
	s.playing = false
	t := s.turn
	t.Number = s.turns
	s.turns++
	s.turn = Turn{}
	return t
}

// resume says whether the strand rests again.
func (s *Strand) resume() (rests bool) {
	defer s.exit()
	_, rests = s.next()
	return rests
}

// Stop ends the strand where it is and frees what it holds. It does not stop its forks.
func (s *Strand) Stop() {
	defer s.exit()
	s.stop()
}
