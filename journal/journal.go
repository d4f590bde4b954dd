// Package journal has the ordered, durable facts of a run: the only truth about it.
//
// A run is a pure fold over its entries. Resume, replay, reports and forks are readers of the same
// list. The package knows no database: stores implement Journal, and package journaltest tests
// them.
//
// A Journal promises that Append is all or nothing and durable when it returns, even if the power
// fails; that entries are read back in the order they were appended; and that two writers never
// both succeed: the one that lost gets ErrFenced and has written nothing.
package journal

import (
	"context"
	"errors"
	"iter"

	"parley/llm"
	"parley/world"
)

// Version is the version of the entries' format. Each version has its date and reason:
//
//	1  2026-11-16  the first
const Version = 1

// ErrFenced is returned to a writer that another process has replaced.
var ErrFenced = errors.New("another process has taken over this run")

// ErrDamaged means that a part of a run file cannot be read.
var ErrDamaged = errors.New("the run file is damaged")

// Journal holds the entries of one run. It may be used from several goroutines.
type Journal interface {
	// Append makes entries durable, all or none of them, in order.
	Append(ctx context.Context, entries ...Entry) error
	// Head reads everything that is needed to resume a run, except its calls.
	Head(ctx context.Context) (*Head, error)
	// Read reads the entries of a span. Those of a run come in order; those of episodes come in
	// order within each episode.
	Read(ctx context.Context, in Span, each func(Entry) error) error
	// Outcomes reads ends of episodes, given the numbers of their entries. Ends.Outcomes calls it.
	Outcomes(ctx context.Context, entries []int, each func(*Ended) error) error
}

// Briefer is a Journal that can leave out texts.
type Briefer interface {
	// Brief reads, in order, what is needed to account for a run: its processes, its batches, and
	// its replies without texts. An entry is valid until each returns.
	Brief(ctx context.Context, each func(Entry) error) error
}

// Span is a part of a journal: all of it, its end, or the turns and replies of some episodes.
type Span struct {
	// Since is the number of the first entry, counted from 1; 0 means 1. It does not apply to spans
	// of episodes.
	Since int
	// From and To select the episodes from From up to, but not including, To. To of 0 selects every
	// entry.
	From, To int
	// Replay leaves out everything that is not needed to resume: episodes that ended, notes, and
	// all of a reply except its position, what the world is given, and its cost and tokens. It
	// applies to spans of episodes. An entry is then valid until each returns; what the world is
	// given stays valid.
	Replay bool
}

// Whole returns the span of a whole journal.
func Whole() Span { return Span{} }

// Episode reads the turns and replies of one episode, in order.
func Episode(ctx context.Context, j Journal, episode int) (out []Entry, err error) {
	if episode < 0 {
		return nil, nil
	}
	err = j.Read(ctx, Span{From: episode, To: episode + 1}, func(e Entry) error {
		out = append(out, e)
		return nil
	})
	return out, err
}

// Head is the state of a run, without its calls.
type Head struct {
	Begun  *Begun // nil: nothing was written yet
	Stages []Staged
	// Ended has the ends of episodes without the worlds' own data: Ended.Outcomes reads these.
	Ended Ends
	// Playing is by episode: those that began and did not end.
	Playing map[int]Progress

	Calls int       // answered or failed: those of models, acts and bots alike; Count tells them apart
	Spent llm.Money // spent on them
	// Risked is the maximum cost of the calls that were in flight when earlier processes were killed, added up over these
	// processes, plus what is allotted to workers. The real cost is unknown.
	Risked llm.Money
	// Allotted is the part of Risked that is allotted to workers, by worker.
	Allotted map[string]llm.Money
	// Cut means that the last process was killed. Lost is then how many calls of recorded turns have no
	// recorded reply; some of them may have waited to be sent. Owed is the most that they, or the calls
	// that an aborted process cut off, can have cost.
	Cut  bool
	Lost int
	Owed llm.Money
	Last Closed // the end of the last process, if it has one
	// Batches has the open batches by key.
	Batches map[string]OpenBatch
	// Steered lists what people changed while the run was played, in order.
	Steered []Steered
	// Collected is how far the log of a cluster is in the journal.
	Collected Collected

	entries int // so far
	open    int // calls without a reply in all live episodes
}

// Add folds one entry into h.
func (h *Head) Add(e Entry) {
	if c, ok := e.(*Collected); ok {
		h.Collected = *c
		return
	}
	h.entries++
	switch e := e.(type) {
	case *Begun:
		h.begin(e)
	case *Opened:
		h.Cut, h.Last = true, Closed{}
		h.Risked = h.Risked.Plus(max(0, e.Cost))
		h.Owed = 0
	case *Closed:
		h.Cut, h.Last = false, *e
		if e.Lost <= 0 {
			h.Owed = 0
		}
	case *Staged:
		h.Stages = append(h.Stages, *e)
		h.rename(len(h.Stages) - 1)
	case *Turned:
		p := h.Progress(e.Episode)
		p.Turned(e)
		h.Live(e.Episode, p)
	case *Replied:
		p := h.Progress(e.Episode)
		p.Replied(e)
		h.Live(e.Episode, p)
		h.Calls++
		h.Spent = h.Spent.Plus(e.Cost())
	case *Ended:
		h.End(h.entries, e)
	case *Exposed:
		if e.Worker != "" {
			h.allot(e.Worker, max(0, e.Worst))
			break
		}
		h.Owed = max(0, e.Worst)
	case *Batched:
		h.Batch(h.entries, e)
	case *Steered:
		h.Steered = append(h.Steered, *e)
	}
	h.count()
}

// allot sets the allotment of a worker.
func (h *Head) allot(worker string, amount llm.Money) {
	h.Risked = max(0, h.Risked.Minus(h.Allotted[worker])).Plus(amount)
	if amount == 0 {
		delete(h.Allotted, worker)
		return
	}
	if h.Allotted == nil {
		h.Allotted = map[string]llm.Money{}
	}
	h.Allotted[worker] = amount
}

// begin applies a new Begun. A complete run is not complete any more when its plan has grown.
func (h *Head) begin(e *Begun) {
	if h.Begun != nil && len(e.Grown) > len(h.Begun.Grown) && h.Last.State == Complete {
		h.Last = Closed{At: e.Grown[len(e.Grown)-1].At, State: Stopped, Reason: Reason{Kind: ByGrowth}}
	}
	h.Begun = e
	for i := range h.Stages {
		h.rename(i)
	}
}

// rename gives the cells of a stage their names in the plan.
func (h *Head) rename(stage int) {
	if h.Begun == nil || len(h.Begun.Cells) == 0 {
		return
	}
	h.Stages[stage].Specs = h.Stages[stage].Specs.Map(func(s world.Spec) world.Spec {
		s.Cell = h.Begun.Cell(s.Cell)
		return s
	})
}

// Cell returns the name of a cell in the plan, given the recorded name.
func (b *Begun) Cell(recorded string) string {
	if b != nil {
		if name, ok := b.Cells[recorded]; ok {
			return name
		}
	}
	return recorded
}

// Progress returns how far an episode has come.
func (h *Head) Progress(episode int) Progress {
	if e := h.Ended.end(episode); e != nil {
		return Progress{Attempt: h.Ended.place(episode, e).attempt, Ended: true}
	}
	return h.Playing[episode]
}

// Played yields the episodes that ended, in order, with their specs. Its cost depends on the
// episodes that ended, not on the size of the stages.
func (h *Head) Played() iter.Seq2[world.Spec, Ended] {
	return func(yield func(world.Spec, Ended) bool) {
		for spec, e := range h.Plays() {
			e.Outcome.Scores = h.Ended.scores(e.Episode)
			if !yield(spec, e) {
				return
			}
		}
	}
}

// Plays yields what Played yields, without the scores. It allocates nothing for an episode.
func (h *Head) Plays() iter.Seq2[world.Spec, Ended] {
	return func(yield func(world.Spec, Ended) bool) {
		for _, st := range h.Stages {
			for n, x := range h.Ended.between(st.First, st.end()) {
				if !yield(st.Specs.At(n-st.First), h.Ended.play(n, x)) {
					return
				}
			}
		}
	}
}

// Live sets the progress of an episode that did not end. It has the effect of the episode's turns
// and replies, except on Calls and Spent. It is for stores that keep count.
func (h *Head) Live(episode int, p Progress) {
	if p.Ended {
		return
	}
	if h.Playing == nil {
		h.Playing = map[int]Progress{}
	}
	h.Ended.Delete(episode) // this is another attempt
	h.open += p.Open - h.Playing[episode].Open
	h.Playing[episode] = p
	h.count()
}

// Batch applies a step of a batch, which is entry number n. It is for stores that do not add every
// entry.
func (h *Head) Batch(n int, e *Batched) {
	switch e.Step {
	case BatchIntended:
		if h.Batches == nil {
			h.Batches = map[string]OpenBatch{}
		}
		h.Batches[e.Key] = OpenBatch{Entry: n}
	case BatchCreated:
		if b, ok := h.Batches[e.Key]; ok {
			b.Created = true
			h.Batches[e.Key] = b
		}
	case BatchClosed:
		delete(h.Batches, e.Key)
	default: // it is open already
	}
}

// Accepted returns how many open batches their providers have accepted. The others may not exist.
func (h *Head) Accepted() (n int) {
	for _, b := range h.Batches {
		if b.Created {
			n++
		}
	}
	return n
}

// OpenBatch is a batch that was begun and is not closed.
type OpenBatch struct {
	Entry   int  // the number, from 1, of the entry that began it
	Created bool // its provider has accepted it
}

// End applies the end of an episode, which is entry number n. It is for stores that do not add every
// entry.
func (h *Head) End(n int, e *Ended) {
	h.open -= h.Playing[e.Episode].Open
	delete(h.Playing, e.Episode)
	h.Ended.Put(n, e)
}

// count computes Lost. The calls of a turn are recorded before they are sent, so some of the open ones may have waited to be
// sent.
func (h *Head) count() {
	if h.Lost = h.open; !h.Cut {
		h.Lost = 0
	}
}

// Cost returns what the call cost this run: nothing, if it was copied from another. It is never
// negative, whatever a file says.
func (r *Replied) Cost() llm.Money {
	if r.Copied {
		return 0
	}
	return max(0, r.Metadata().Cost)
}

// Reply returns what a world is given of r.
func (r *Replied) Reply() world.Reply {
	if r.Error != nil {
		reply := world.Reply{Failed: r.Error.Kind}
		if reply.Failed == llm.KindRaised { // an error of the world's own code
			reply.Why = r.Error.Message
		}
		return reply
	}
	resp := r.Response
	if resp == nil {
		return world.Reply{Failed: llm.KindMalformed} // an empty reply
	}
	if resp.Finish == llm.FinishRefused || resp.Refusal != "" && resp.Text == "" {
		return world.Reply{Failed: llm.KindRefused} // as dispatch does for structured answers
	}
	return world.Reply{Text: resp.Text, JSON: resp.JSON, ToolCalls: resp.ToolCalls, Thoughts: resp.Thoughts, Finish: resp.Finish, Weights: resp.WeightVersion}
}
