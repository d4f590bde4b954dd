package world

import (
	"fmt"
	"iter"
	"runtime/debug"
	"slices"
)

// Strand is one line of play of an episode, as its driver sees it: the driver resumes strands and gives them replies.
// It is a coroutine: world code runs only in Next. Any goroutine may call Next, one at a time for a whole episode.
type Strand struct {
	// Path names the strand within its episode: "" is the first, "4.2/" the third strand of the fork in turn 4 of the
	// first.
	Path string

	deal    Deal
	asks    *Unanswered // asks of the whole episode, without acts
	next    func() (struct{}, bool)
	stop    func()
	turn    Turn
	replies []Reply
	acts    []int // which of the calls are acts, in order
	turns   int   // finished turns: the number of the current one
	playing bool  // in Next
}

// Turn is what a strand does between two pauses: it makes notes, and then asks, forks or ends.
type Turn struct {
	Number int // from 0, in its strand
	Notes  []Note
	// Phases are the names of the phases that begin before its calls.
	Phases []string
	// Calls are what it waits for.
	Calls []Call
	// Forks are the strands it waits for.
	Forks []*Strand
	// Done means that it has ended. The first strand of an episode then has an Outcome.
	Done    bool
	Outcome Outcome
	// Panic is the value of a panic of the world, and Stack its stack trace.
	Panic string
	Stack string
	// Abort is set if the world panicked with an Abort: the run must stop.
	Abort error
}

// Abort is a panic value that stops the run instead of failing the episode, for a fault that is not in the world: the
// process that plays it cannot be started. The episode continues when the run is resumed.
type Abort struct{ Err error }

// Begin returns the first strand of an episode of w.
func Begin(w World, deal Deal) *Strand {
	asks := &Unanswered{}
	return newStrand("", deal, asks, func(t *Table) Outcome {
		o := w.Play(t)
		asks.settle(&o)
		return o
	})
}

func newStrand(path string, deal Deal, asks *Unanswered, play func(*Table) Outcome) *Strand {
	s := &Strand{Path: path, deal: deal, asks: asks}
	s.next, s.stop = iter.Pull(func(yield func(struct{}) bool) {
		returned := false
		defer func() { s.end(recover(), returned) }()
		s.turn.Outcome = play(&Table{strand: s, yield: yield})
		returned = true
	})
	return s
}

// end notes how the world ended: with a panic, or because it returned or did not.
func (s *Strand) end(panicked any, returned bool) {
	switch p := panicked.(type) {
	case nil:
		if !returned { // Pull passes a Goexit on to the caller of Next, but not a panic
			panic(exited{string(debug.Stack())})
		}
	case stopped:
	case Abort:
		s.turn.Abort = p.Err
	default:
		s.turn.Panic, s.turn.Stack = fmt.Sprint(p), string(debug.Stack())
	}
}

// exited is the panic value of a strand whose world ended its goroutine.
type exited struct{ stack string }

// exit turns it into a panic of the world. Defer it.
func (s *Strand) exit() {
	switch p := recover().(type) {
	case nil:
	case exited:
		s.turn.Panic, s.turn.Stack = "the world called runtime.Goexit, or Fatal of a test", p.stack
	default:
		panic(p)
	}
}

// Next resumes the strand until it pauses again. replies answer the calls of the turn before, in order; after a fork
// they are nil, and the forks must be done.
func (s *Strand) Next(replies []Reply) Turn {
	s.turn = Turn{}
	s.replies = replies
	s.playing = true
	if !s.resume() {
		s.turn.Done = true // it ended, or had been stopped
	}
	s.playing = false
	t := s.turn
	t.Number = s.turns
	s.turns++
	s.turn = Turn{}
	return t
}

// ask sets the calls of the turn. It and take are functions of their own, so that the frame of Table.Ask, which is kept while a world
// waits, is small and holds no calls: very many worlds may wait at once.
//
//go:noinline
func (s *Strand) ask(calls []Call) {
	s.turn.Calls, s.acts = calls, nil
	for i := range calls {
		if calls[i].Act != nil {
			s.acts = append(s.acts, i)
		}
	}
}

// take returns the replies, and counts those that are not of acts.
//
//go:noinline
func (s *Strand) take() []Reply {
	replies := s.replies
	s.replies = nil
	for i := range replies {
		if _, act := slices.BinarySearch(s.acts, i); !act {
			s.asks.Add(replies[i])
		}
	}
	return replies
}

// resume reports whether the strand paused again.
func (s *Strand) resume() (rests bool) {
	defer s.exit()
	_, rests = s.next()
	return rests
}

// Stop ends the strand and frees its resources. It does not stop its forks.
func (s *Strand) Stop() {
	defer s.exit()
	s.stop()
}
