package world

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
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
// from now on belongs to it. People use the name to say where to fork an episode. It changes nothing in play and is not
// recorded. Only phases of the first strand count.
func (t *Table) Phase(name string) {
	t.check("Phase")
	t.strand.turn.Phases = append(t.strand.turn.Phases, name)
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
