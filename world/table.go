package world

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"iter"
	"math/rand/v2"
	"runtime/debug"
	"slices"
)

// Table is the world's interface to its driver. Each strand has its own, and only that strand may use it.
type Table struct {
	strand *Strand
	yield  func(struct{}) bool
	rand   *rand.Rand
}

// Ask makes calls at once, waits for all replies, and returns them in the same order.
func (t *Table) Ask(calls ...Call) []Reply {
	t.check("Ask")
	if len(calls) == 0 {
		return nil
	}
	t.strand.ask(calls)
	t.pause()
	return t.strand.take()
}

// One makes one call and returns its reply.
func (t *Table) One(call Call) Reply { return t.Ask(call)[0] }

// Fork plays n strands, each with its own number and table, and returns when all are done. They do not wait for each
// other. They may read any data, but may write only their own, such as element i of a slice.
func (t *Table) Fork(n int, play func(i int, t *Table)) {
	t.check("Fork")
	if n <= 0 {
		return
	}
	s := t.strand
	for i := range n {
		s.turn.Forks = append(s.turn.Forks, newStrand(fmt.Sprintf("%s%d.%d/", s.Path, s.turns, i), s.deal, s.asks, func(t *Table) Outcome {
			play(i, t)
			return Outcome{}
		}))
	}
	t.pause()
}

// Rand returns the strand's source of chance. It is the same on every play.
func (t *Table) Rand() *rand.Rand {
	t.check("Rand")
	if t.rand == nil {
		t.rand = t.strand.deal.rand(t.strand.Path)
	}
	return t.rand
}

// Deal returns what the chance of the episode depends on: the seed of the run, and the number of the deal.
func (t *Table) Deal() Deal { return t.strand.deal }

// Note records something for readers. v must marshal to JSON.
func (t *Table) Note(kind, seat string, v any) {
	t.check("Note")
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("world: note %s: %v", kind, err))
	}
	t.strand.turn.Notes = append(t.strand.turn.Notes, Note{Kind: kind, Seat: seat, Data: b})
}

// Phase begins a phase of the episode with the world's own name for it, such as F1902M or round 2: what the strand does
// from now on belongs to it. Readers see the name, and people use it to say where to fork an episode, which only phases
// of the first strand can. It is recorded as a note, and changes nothing in play.
func (t *Table) Phase(name string) {
	t.check("Phase")
	t.Note(phaseKind, "", name)
}

// check panics unless the table's strand is being played: not one that waits for its forks, nor another of the same
// fork, nor one that is done.
func (t *Table) check(what string) {
	if !t.strand.playing {
		panic("world: " + what + " at the table of another strand: a fork plays at the table it is given, and at no other")
	}
}

// pause gives the turn to the driver of the strand and waits to be resumed.
func (t *Table) pause() {
	if !t.yield(struct{}{}) {
		panic(stopped{})
	}
}

// stopped unwinds a world that is not resumed.
type stopped struct{}

// Deal determines the chance of an episode: two episodes with the same deal draw the same, whatever the agents do.
type Deal struct {
	Seed   uint64 // of the run
	Number int    // of the deal
}

func (d Deal) rand(path string) *rand.Rand {
	b := binary.BigEndian.AppendUint64(nil, d.Seed)
	b = binary.BigEndian.AppendUint64(b, uint64(d.Number))
	h := sha256.Sum256(append(b, path...))
	return rand.New(rand.NewPCG(binary.BigEndian.Uint64(h[:8]), binary.BigEndian.Uint64(h[8:16])))
}

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
