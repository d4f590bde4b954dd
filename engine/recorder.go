package engine

import (
	"context"
	"runtime"

	"parley/journal"
)

// recorder is the one writer of a run. Nothing is seen before it is durable: what is to happen
// after an entry happens once that is committed, in the order of the entries, and after a commit has
// failed nothing is written any more. It commits whatever waits in one go, so that the cost of
// making things durable is shared by all that happen at the same time.
type recorder struct {
	journal journal.Journal
	in      chan written
	done    chan struct{}
	err     error // set before done is closed
	entries []journal.Entry
}

type written struct {
	entry journal.Entry
	after func(kept bool) // run once the entry is durable, or will never be; may be nil
}

const (
	recorderQueue = 8192 // entries that may wait
	recorderMost  = 4096 // entries in one commit
)

func newRecorder(j journal.Journal) *recorder {
	return &recorder{journal: j, in: make(chan written, recorderQueue), done: make(chan struct{})}
}

// run commits until close is called, or until a commit fails: failed is then told, and
// nothing is written any more.
func (r *recorder) run(ctx context.Context, failed func(error)) {
	defer close(r.done)
	batch := make([]written, 0, recorderMost)
	for w := range r.in {
		batch = append(batch[:0], w)
		// Whoever is about to write does so first: a commit costs about the same for one as for
		// many. Where nobody is, this takes no time.
		runtime.Gosched()
	more:
		for len(batch) < recorderMost {
			select {
			case w, ok := <-r.in:
				if !ok {
					break more
				}
				batch = append(batch, w)
			default:
				break more
			}
		}
		r.commit(ctx, batch, failed)
	}
}

// commit makes a batch durable. Once that has failed, what cannot be kept did not happen.
func (r *recorder) commit(ctx context.Context, batch []written, failed func(error)) {
	if r.err == nil {
		r.entries = r.entries[:0]
		for _, w := range batch {
			r.entries = append(r.entries, w.entry)
		}
		if r.err = r.journal.Append(ctx, r.entries...); r.err != nil {
			failed(r.err)
		}
	}
	for _, w := range batch {
		if w.after != nil {
			w.after(r.err == nil)
		}
	}
}

// write hands an entry over. Entries are committed in the order they are handed over.
func (r *recorder) write(e journal.Entry, after func(kept bool)) { r.in <- written{e, after} }

// close waits until everything that was handed over is committed.
func (r *recorder) close() error {
	close(r.in)
	<-r.done
	return r.err
}
