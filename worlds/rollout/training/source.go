package training

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"parley/journal"
	"parley/world/program"
)

// source is the run file as readers see it: which groups are complete, by cursor. It reads the file only when
// a reader finds nothing new.
type source struct {
	open  func() (journal.Parts, func() error, error)
	there atomic.Bool // the file has a run

	mu     sync.Mutex // guards the following fields
	src    journal.Parts
	done   func() error
	groups trajectoryGroups
	// ahead is how many groups may be begun and not read; 0: any number. group is the plan's size of groups. read is up to
	// where clients have read, and control is of the run that is played.
	ahead, group, read int
	control            program.Control

	wakeMu sync.Mutex
	wake   chan struct{} // closed at the next change
}

// changed wakes every waiting reader. It never blocks.
func (f *source) changed() {
	f.wakeMu.Lock()
	defer f.wakeMu.Unlock()
	close(f.wake)
	f.wake = make(chan struct{})
}

// watch returns a channel that is closed at the next change. Read the source after this call.
func (f *source) watch() <-chan struct{} {
	f.wakeMu.Lock()
	defer f.wakeMu.Unlock()
	return f.wake
}

// update reads what is new, and reports whether there is a run. source.mu is held.
func (f *source) update(ctx context.Context) (there bool, err error) {
	if !f.there.Load() {
		return false, nil
	}
	if f.src == nil {
		if f.src, f.done, err = f.open(); err != nil {
			return false, err
		}
	}
	planned, _ := f.groups.Count()
	err = f.groups.Update(ctx, f.src)
	if now, _ := f.groups.Count(); now != planned {
		f.allow()
	}
	if errors.Is(err, errNoRun) { // it is not written yet
		return false, nil
	}
	return true, err
}

// begun notes that a run is played.
func (f *source) begun(c program.Control) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.control = c
	f.allow()
}

// reached notes that a client has read everything up to a cursor.
func (f *source) reached(cursor int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if cursor > f.read {
		f.read = cursor
		f.allow()
	}
}

// taken returns how many groups were read.
func (f *source) taken() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.groups.Before(f.read)
}

// allow begins as many groups as may be ahead of those that were read. source.mu is held.
func (f *source) allow() {
	if f.ahead <= 0 || f.control == nil {
		return
	}
	n := f.groups.Before(f.read) + f.ahead
	until, ok := f.groups.Bound(n)
	if !ok { // the plan is not written yet
		until = n * f.group
	}
	f.control.Until(until)
}

// after reads the first group that became complete after a cursor. at is its cursor, or 0 if no other is
// complete yet. If the filter drops it, left says why.
func (f *source) after(ctx context.Context, cursor int, filter Filter) (g *Group, left string, at int, err error) {
	f.mu.Lock()
	c, ok := f.groups.After(cursor)
	if !ok {
		if _, err := f.update(ctx); err != nil {
			f.mu.Unlock()
			return nil, "", 0, err
		}
		c, ok = f.groups.After(cursor)
	}
	src := f.src
	f.mu.Unlock()
	if !ok {
		return nil, "", 0, nil
	}
	g, left, err = f.groups.Read(ctx, src, c, filter)
	if left == leftUnfinished { // an episode ends once
		err = fmt.Errorf("trainer: the group at %d is being played again", c.Cursor)
	}
	return g, left, c.Cursor, err
}

// run names the run, or is empty if there is none yet.
func (f *source) run(ctx context.Context) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if there, err := f.update(ctx); err != nil || !there {
		return "", err
	}
	return f.groups.Run(), nil
}

// count returns how many groups there are and how many are complete, up to which cursor.
func (f *source) count(ctx context.Context) (planned, complete int, last string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if there, err := f.update(ctx); err != nil || !there {
		return 0, 0, "", err
	}
	planned, complete = f.groups.Count()
	return planned, complete, f.text(f.groups.Seen()), nil
}

// text writes a cursor: the run and a position in its journal, so that a cursor of another run is recognized.
// The start is "".
func (f *source) text(cursor int) string {
	if cursor == 0 {
		return ""
	}
	return f.groups.Run() + "." + strconv.Itoa(cursor)
}

// write is text without source.mu held.
func (f *source) write(cursor int) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.text(cursor)
}

// errForeign means that a cursor is not from this run.
var errForeign = errors.New("cursor")

// parse reads a cursor.
func (f *source) parse(ctx context.Context, text string) (int, error) {
	if text == "" {
		return 0, nil
	}
	i := strings.LastIndexByte(text, '.')
	n, err := strconv.Atoi(text[i+1:])
	if i < 0 || err != nil || n < 1 {
		return 0, fmt.Errorf("%w %.80q is not valid: send back a cursor that you were given, or leave it out to begin at the start", errForeign, text)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	there, err := f.update(ctx)
	switch {
	case err != nil:
		return 0, err
	case !there:
		return 0, fmt.Errorf("%w %.80q: there is no run yet: leave it out", errForeign, text)
	case text[:i] != f.groups.Run() || n > f.groups.Seen():
		return 0, fmt.Errorf("%w %.80q is not of this run, which is %s: leave it out to begin at the start", errForeign, text, f.groups.Run())
	}
	return n, nil
}

func (f *source) close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.done == nil {
		return nil
	}
	return f.done()
}
