// Part catalog lists the runs of a folder: their state, progress, cost and main score, and which are forks of others.
//
// It remembers what it read of a file until the file changes. What takes long is done in the background, one file after
// the other, so that a folder with very many runs is listed at once, with what is known so far.

package viewer

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/internal/run/control"
	"parley/internal/run/results"
	"parley/internal/run/runfile"
	"parley/journal"
	"parley/world"
)

// Entry is a run of the list.
type Entry struct {
	Name    string
	Changed time.Time
	Known   bool // the file was read; otherwise the rest is empty
	Kind    string
	State   string
	Problem string // why it cannot be read
	Outline runfile.Outline
	Scores  Scores
	// Fork is where it was forked from; nil: it is no fork. Origin is the name of that run in the list, or empty, and
	// Depth is how many runs it descends from.
	Fork   *journal.Origin
	Origin string
	Depth  int

	run string // its id
}

// Done returns how many episodes are done.
func (e *Entry) Done() int { return e.Outline.Ended + e.Outline.Failed }

// runCatalog lists the runs of a library.
type runCatalog struct {
	Library *runLibrary
	KindOf  func(*journal.Begun) world.Kind
	// Background runs a function in the background.
	Background func(func(context.Context))
	// Wait means that List reads everything before it returns.
	Wait bool

	mu     sync.Mutex
	files  map[string]*file // by path
	queue  []string         // paths to read in the background
	queued map[string]bool
	busy   bool
}

// file is what is known of a file.
type file struct {
	state  libraryState // when it was read
	entry  Entry
	scored libraryState  // when its scores were computed
	at     time.Time     // the same
	took   time.Duration // to compute them
}

// catalogFew is how many files List reads at least, and patience how long it reads more before it leaves them to the background.
const (
	catalogFew = 20
	patience   = 150 * time.Millisecond
)

// List lists all runs: the latest first, and forks after the run that they are from. more reports whether files are
// being read for the first time.
func (c *runCatalog) List(ctx context.Context) (all []*Entry, more bool) {
	names, paths := c.Library.Names()
	reading := c.reader()
	for _, name := range names {
		at := paths[name]
		f, state := reading(ctx, at)
		if c.Wait && f.due(state) {
			f = c.score(ctx, at, state)
		}
		if f.state != state || f.due(state) {
			c.later(at)
			more = more || !f.entry.Known || f.scored == libraryState{} // the list follows a run that grows anyway
		}
		e := f.entry
		e.Name, e.Changed = name, state.Changed()
		if e.Outline.Open { // the file does not change when its process is killed
			e.State = catalogStateOf(e.Outline, at)
		}
		all = append(all, &e)
	}
	c.forget(paths)
	return lineage(all), more
}

// reader returns a function that returns what is known of a file, and its state. It reads the file first if it was changed, as long
// as there is time for that.
func (c *runCatalog) reader() func(context.Context, string) (file, libraryState) {
	until, read := time.Now().Add(patience), 0
	return func(ctx context.Context, at string) (file, libraryState) {
		state, f := libraryStateOf(at), c.known(at)
		if f.state != state && (c.Wait || read < catalogFew || time.Now().Before(until)) {
			f = c.read(ctx, at, state)
			read++
		}
		return f, state
	}
}

// Origin returns the name of the run that a fork is from, as List does. It is empty if there is no such run, or if its file
// was not read yet.
func (c *runCatalog) Origin(ctx context.Context, fork *journal.Origin) string {
	names, paths := c.Library.Names()
	reading := c.reader()
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(named(b, fork), named(a, fork)) })
	for _, name := range names {
		if f, _ := reading(ctx, paths[name]); fork.Run != "" && f.entry.run == fork.Run {
			return name
		}
	}
	return ""
}

// named is 1 if the file of a run is named as the one that was forked, and 0 if not.
func named(run string, fork *journal.Origin) int {
	if path.Base(run) == filepath.Base(fork.File) {
		return 1
	}
	return 0
}

// forget forgets files that are gone.
func (c *runCatalog) forget(paths map[string]string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.files) <= len(paths) {
		return
	}
	there := map[string]bool{}
	for _, path := range paths {
		there[path] = true
	}
	maps.DeleteFunc(c.files, func(path string, _ *file) bool { return !there[path] })
}

// due reports whether the scores must be computed: for the first time, or because the run has grown, but not for more
// than a tenth of the time.
func (f *file) due(state libraryState) bool {
	return f.entry.Known && f.entry.Problem == "" && f.scored != state && !time.Now().Before(f.at.Add(10*f.took))
}

// known returns what is known of a file.
func (c *runCatalog) known(path string) file {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := c.files[path]; f != nil {
		return *f
	}
	return file{}
}

// keep keeps what change makes of what is known of a file.
func (c *runCatalog) keep(path string, change func(*file)) file {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.files == nil {
		c.files = map[string]*file{}
	}
	if c.files[path] == nil {
		c.files[path] = &file{}
	}
	change(c.files[path])
	return *c.files[path]
}

// read reads the outline of a run.
func (c *runCatalog) read(ctx context.Context, path string, state libraryState) file {
	e := outline(ctx, path)
	return c.keep(path, func(f *file) {
		e.Scores = f.entry.Scores
		f.state, f.entry = state, e
	})
}

// score computes the main score of a run.
func (c *runCatalog) score(ctx context.Context, path string, state libraryState) file {
	began := time.Now()
	s := c.scores(ctx, path)
	return c.keep(path, func(f *file) { f.entry.Scores, f.scored, f.at, f.took = s, state, time.Now(), time.Since(began) })
}

// later reads a file in the background.
func (c *runCatalog) later(path string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.queued == nil {
		c.queued = map[string]bool{}
	}
	if !c.queued[path] {
		c.queued[path], c.queue = true, append(c.queue, path)
	}
	if !c.busy {
		c.busy = true
		c.Background(c.work)
	}
}

// work reads the files of the queue.
func (c *runCatalog) work(ctx context.Context) {
	for {
		c.mu.Lock()
		if len(c.queue) == 0 || ctx.Err() != nil {
			c.busy = false
			c.mu.Unlock()
			return
		}
		path := c.queue[0]
		c.queue = c.queue[1:]
		delete(c.queued, path)
		c.mu.Unlock()
		state := libraryStateOf(path)
		f := c.known(path)
		if f.state != state {
			f = c.read(ctx, path, state)
		}
		if f.due(state) {
			c.score(ctx, path, state)
		}
	}
}

// outline reads the state of a run.
func outline(ctx context.Context, path string) (e Entry) {
	e.Known = true
	store, err := runfile.OpenRead(path)
	if err != nil {
		e.Problem = unreadable(err)
		return e
	}
	defer func() { _ = store.Close() }() // it was only read
	o, err := store.Outline(ctx)
	if err != nil {
		e.Problem = unreadable(err)
		return e
	}
	e.State = catalogStateOf(o, path)
	if b := o.Begun; b != nil {
		e.Kind, e.run, e.Fork = b.Kind, b.Run, b.Fork
	}
	o.Begun, o.Steered = nil, nil // a plan can be long
	e.Outline = o
	return e
}

// catalogStateOf returns the state of the run at a path, for people.
func catalogStateOf(o runfile.Outline, path string) string {
	switch {
	case o.Open && runfile.Played(path):
		return control.Playing
	case o.Open:
		return control.CutOff
	case o.Last.State == "":
		return results.StateNew
	default:
		return string(o.Last.State)
	}
}

// unreadable says in plain words why a run file cannot be read.
func unreadable(err error) string {
	switch {
	case errors.Is(err, runfile.ErrDamaged):
		why := err.Error()
		if cause := errors.Unwrap(err); cause != nil { // without the advice
			why = strings.TrimPrefix(cause.Error(), runfile.ErrDamaged.Error()+": ")
		}
		return "This file is damaged: " + why + "."
	case errors.Is(err, fs.ErrPermission):
		return "You may not read this file."
	case errors.Is(err, runfile.ErrVersion):
		return "Another version of parley wrote this file."
	case errors.Is(err, runfile.ErrForeign):
		return "This is not a run file."
	default:
		return "This file cannot be read: " + strings.TrimPrefix(err.Error(), "sqlite: ") + "."
	}
}

// origin returns the run that e was forked from: the file that was forked, or else a copy. It is nil if there is none.
func (e *Entry) origin(byRun map[string][]*Entry) *Entry {
	if e.Fork == nil || e.Fork.Run == "" || len(byRun[e.Fork.Run]) == 0 {
		return nil
	}
	all := byRun[e.Fork.Run]
	i := slices.IndexFunc(all, func(o *Entry) bool { return named(o.Name, e.Fork) > 0 })
	return all[max(0, i)]
}

// lineage sorts runs: the latest first, and forks after the run that they are from.
func lineage(all []*Entry) (out []*Entry) {
	byRun, forks := map[string][]*Entry{}, map[*Entry][]*Entry{} // a run can have been copied
	slices.SortStableFunc(all, func(a, b *Entry) int { return cmp.Or(b.Changed.Compare(a.Changed), strings.Compare(a.Name, b.Name)) })
	for _, e := range all {
		byRun[e.run] = append(byRun[e.run], e)
	}
	var first []*Entry
	for _, e := range all {
		from := e.origin(byRun)
		if from == nil || from == e {
			first = append(first, e)
			continue
		}
		e.Origin = from.Name
		forks[from] = append(forks[from], e)
	}
	seen := map[*Entry]bool{}
	var add func(e *Entry, depth int)
	add = func(e *Entry, depth int) {
		if seen[e] {
			return
		}
		seen[e], e.Depth = true, depth
		out = append(out, e)
		for _, f := range forks[e] {
			add(f, depth+1)
		}
	}
	for _, e := range first {
		add(e, 0)
	}
	for _, e := range all { // files that say that they are forks of each other
		add(e, 0)
	}
	return out
}
