package bulk

import (
	"fmt"
	"io"
	"sync"
)

// Window is how many requests may be ahead of the oldest unanswered one when the output is a stream: answers
// that arrive early wait in memory.
const Window = 10_000

// ordered writes records to a stream in the input's order, each as soon as all earlier ones are written. It is
// safe for use by several goroutines.
type ordered struct {
	w      io.Writer
	window int
	Format func(*Record) ([]byte, error) // formats a record. Default: as a line of JSON.

	mu    sync.Mutex
	next  int            // the slot to write next
	ready map[int][]byte // records that wait for earlier ones, by slot
	moved chan struct{}  // closed and replaced when next grows
}

// NewOrdered returns a writer of records to w in the order of their requests, which holds at most ahead of them.
func NewOrdered(w io.Writer, ahead int) *ordered {
	return &ordered{w: w, window: ahead, Format: (*Record).bytes, ready: map[int][]byte{}, moved: make(chan struct{})}
}

// have is always false: a stream keeps nothing from earlier runs.
func (o *ordered) have(int, recordKey, digest) bool { return false }

// admit waits until slot is inside the window. It returns false if stop is closed first.
func (o *ordered) admit(slot int, stop <-chan struct{}) bool {
	for {
		o.mu.Lock()
		in, moved := slot < o.next+o.window, o.moved
		o.mu.Unlock()
		if in {
			return true
		}
		select {
		case <-moved:
		case <-stop:
			return false
		}
	}
}

// put writes the record, and the records that waited for it.
func (o *ordered) put(slot int, r *Record) error {
	var b []byte
	if r != nil {
		var err error
		if b, err = o.Format(r); err != nil {
			return err
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ready[slot] = b
	if slot != o.next {
		return nil
	}
	for b, ok := o.ready[o.next]; ok; b, ok = o.ready[o.next] {
		delete(o.ready, o.next)
		o.next++
		if _, err := o.w.Write(b); err != nil {
			return fmt.Errorf("standard output: %w", err)
		}
	}
	close(o.moved)
	o.moved = make(chan struct{})
	return nil
}

// Finish has nothing to do: every slot that began has ended.
func (o *ordered) Finish(bool) (string, error) { return "", nil }
