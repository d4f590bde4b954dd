// Package groupcommit commits the entries of many goroutines together, so that they share the
// cost of making them durable.
//
// It promises that entries are committed in the order in which they are written, those of one
// Write in one commit; that Write's callback runs once they are committed, or when they will
// never be; and that after a commit has failed, nothing more is committed.
package groupcommit

import (
	"context"
	"runtime"
	"sync"
	"time"
)

const (
	queueSize = 8192 // writes that may wait
	maxGroup  = 4096 // entries in one commit
)

// SyncEvery is how long after a commit Sync is called at the latest.
const SyncEvery = 100 * time.Millisecond

// Log is where entries are written. Its methods may be called from several goroutines.
type Log[E any] struct {
	// Append commits entries, all or none of them.
	Append func(ctx context.Context, entries ...E) error
	// Sync makes durable what Append has committed. Append may be called meanwhile. Default: Append
	// does so itself.
	Sync func() error
	// Failed, if set, is called with the first error of Append or Sync, before the callbacks.
	Failed func(error)

	in        chan write[E]
	committed chan func(error) // after each commit: the callbacks that wait for Sync, or nil
	done      chan struct{}
	once      sync.Once

	mu  sync.Mutex
	err error // the first of Append or Sync
}

type write[E any] struct {
	first E
	more  []E
	after func(error)
	sync  bool
}

// New returns a Log that Append commits to. Run must be called.
func New[E any](appendTo func(ctx context.Context, entries ...E) error) *Log[E] {
	return &Log[E]{Append: appendTo, in: make(chan write[E], queueSize), done: make(chan struct{})}
}

// Write hands entries over. It calls after, unless that is nil, from a goroutine of Run: with nil
// once the entries are committed, or with the error that prevents it.
func (l *Log[E]) Write(after func(error), first E, more ...E) {
	l.in <- write[E]{first: first, more: more, after: after}
}

// WriteSync is Write, and calls after only when the entries are durable.
func (l *Log[E]) WriteSync(after func(error), first E, more ...E) {
	l.in <- write[E]{first: first, more: more, after: after, sync: true}
}

// Close waits until everything is committed, and returns the first error. Nothing may be written
// any more. It may be called again.
func (l *Log[E]) Close() error {
	l.once.Do(func() { close(l.in) })
	<-l.done
	return l.failure()
}

// Run commits what is written until Close is called.
func (l *Log[E]) Run(ctx context.Context) {
	defer close(l.done)
	var syncs sync.WaitGroup
	defer syncs.Wait()
	if l.Sync != nil {
		l.committed = make(chan func(error), queueSize)
		defer close(l.committed)
		syncs.Go(l.syncCommits)
	}
	var g group[E]
	for w := range l.in {
		g.reset()
		g.add(w)
		// A commit costs about as much for one entry as for many. Goroutines that are about to
		// write do so first; if there are none, this takes no time.
		runtime.Gosched()
		g.fill(l.in)
		err := l.attempt(func() error { return l.Append(ctx, g.entries...) })
		report(g.after, err)
		l.afterCommit(g.afterSync, err)
	}
}

// afterCommit passes on the callbacks that wait for Sync.
func (l *Log[E]) afterCommit(after []func(error), err error) {
	switch {
	case l.Sync == nil:
		report(after, err)
	case len(after) == 0:
		select {
		case l.committed <- nil:
		default: // it is full, so Sync is called anyway
		}
	default:
		for _, f := range after {
			l.committed <- f
		}
	}
}

// syncCommits calls Sync after commits: at once if somebody waits for it, otherwise within SyncEvery.
// A commit does not wait for it.
func (l *Log[E]) syncCommits() {
	var after []func(error)
	var due <-chan time.Time // when to sync; nil if everything is durable
	for {
		select {
		case <-due:
		case f, ok := <-l.committed:
			if !ok {
				return
			}
			if f == nil {
				if due == nil {
					due = time.After(SyncEvery)
				}
				continue
			}
			after = append(after, f)
		}
		for range len(l.committed) { // they are committed too
			if f := <-l.committed; f != nil {
				after = append(after, f)
			}
		}
		due = nil
		report(after, l.attempt(l.Sync)) // Failed and later callbacks get the error
		clear(after)
		after = after[:0]
	}
}

func report(after []func(error), err error) {
	for _, f := range after {
		f(err)
	}
}

// attempt calls do, unless something has failed before.
func (l *Log[E]) attempt(do func() error) error {
	if err := l.failure(); err != nil {
		return err
	}
	err := do()
	if err == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = err
		if l.Failed != nil {
			l.Failed(err)
		}
	}
	return l.err
}

func (l *Log[E]) failure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// group is what goes into one commit.
type group[E any] struct {
	entries          []E
	after, afterSync []func(error)
}

func (g *group[E]) reset() {
	clear(g.entries) // do not retain what is written
	clear(g.after)
	clear(g.afterSync)
	g.entries, g.after, g.afterSync = g.entries[:0], g.after[:0], g.afterSync[:0]
}

func (g *group[E]) add(w write[E]) {
	g.entries = append(append(g.entries, w.first), w.more...)
	switch {
	case w.after == nil:
	case w.sync:
		g.afterSync = append(g.afterSync, w.after)
	default:
		g.after = append(g.after, w.after)
	}
}

// fill adds the writes that wait.
func (g *group[E]) fill(in <-chan write[E]) {
	for len(g.entries) < maxGroup {
		select {
		case w, ok := <-in:
			if !ok {
				return
			}
			g.add(w)
		default:
			return
		}
	}
}
