// Package library finds run files, opens those that somebody looks at, and says when they have grown.
package library

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/internal/filelock"
	"parley/internal/label"
	"parley/internal/live"
	"parley/internal/serve/viewer/listing"
	"parley/internal/store/sqlite"
	"parley/internal/view/index"
	"parley/journal"
	"parley/world"
)

// Library is the run files of some paths. They are opened when somebody looks at them.
type Library struct {
	files   []string // that the user named
	folders []string

	kindOf func(*journal.Begun) world.Kind
	// Unlabelled means that runs have no labels, for pages that are published. Set it before Get.
	Unlabelled bool

	mu     sync.Mutex
	open   map[string]*Run // by name
	closed bool
}

// ErrNotFound means that there is no such run.
var ErrNotFound = errors.New("there is no such run")

// Extension is the extension of run files, by which they are found in folder.
const Extension = ".parley"

// New returns the library of some run files, and of folders with run files. kindOf returns the kind of a run, or
// zero if it is unknown. New fails if a path does not exist.
func New(paths []string, kindOf func(*journal.Begun) world.Kind) (*Library, error) {
	l := &Library{open: map[string]*Run{}, kindOf: kindOf}
	for _, p := range paths {
		info, err := os.Stat(p)
		switch {
		case err != nil:
			return nil, fmt.Errorf("library: %w", err)
		case info.IsDir():
			if real, err := filepath.EvalSymlinks(p); err == nil {
				p = real // WalkDir does not follow a link
			}
			l.folders = append(l.folders, filepath.Clean(p))
		default:
			l.files = append(l.files, filepath.Clean(p))
		}
	}
	return l, nil
}

// Single returns the name of the run if there is only one file.
func (l *Library) Single() (name string, ok bool) {
	if len(l.folders) > 0 || len(l.files) != 1 {
		return "", false
	}
	return filepath.Base(l.files[0]), true
}

// The limits of a search for run files in a folder.
const (
	maxDepth = 3
	maxFiles = 10_000
)

// paths returns the path of every run file by its name: its base name, its path in a folder, or its
// whole path where two would have the same name.
func (l *Library) paths() map[string]string {
	out := map[string]string{}
	add := func(name, path string) {
		if _, taken := out[name]; taken {
			name = path
		}
		out[name] = path
	}
	for _, f := range l.files {
		add(filepath.Base(f), f)
	}
	for _, folder := range l.folders {
		_ = filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error { // what cannot be read is not listed
			rel, _ := filepath.Rel(folder, path) // it is below
			switch {
			case err != nil || len(out) >= maxFiles:
				return filepath.SkipDir
			case d.IsDir() && path != folder && (strings.HasPrefix(d.Name(), ".") || strings.Count(rel, string(filepath.Separator)) >= maxDepth-1):
				return filepath.SkipDir
			case d.Type().IsRegular() && filepath.Ext(path) == Extension:
				add(filepath.ToSlash(rel), path)
			}
			return nil
		})
	}
	return out
}

// Run is an open run. It may be used from several goroutines.
type Run struct {
	Name, Path string
	Store      *sqlite.Store
	Index      *index.Index
	Begun      *journal.Begun
	Kind       world.Kind // zero if it is unknown

	info fs.FileInfo   // of the file, when it was opened
	used time.Time     // when somebody looked at it; guarded by the Library
	gone chan struct{} // closed with the run

	mu      sync.Mutex
	entries int               // of the run, when it was last looked at
	waiting map[chan int]bool // pages that wait for a change

	unlabelled bool
	labelling  sync.Mutex
	labels     *label.Set
	labelled   fileState // of the file with labels, when they were read
}

// Labels returns the labels of the run, and brings them into its index.
func (r *Run) Labels(ctx context.Context) (*label.Set, error) {
	if r.unlabelled {
		return &label.Set{}, nil
	}
	r.labelling.Lock()
	defer r.labelling.Unlock()
	state := stateOf(filelock.Beside(r.Path, label.Suffix))
	if r.labels != nil && state == r.labelled {
		return r.labels, nil
	}
	set, err := label.Read(ctx, r.Path, r.Begun.Run)
	if err != nil {
		return nil, err
	}
	if err := r.Index.SetLabels(listing.Labels(set)); err != nil {
		return nil, err
	}
	r.labels, r.labelled = set, state
	r.Tell()
	return set, nil
}

// relabel reads the labels again if their file was changed.
func (r *Run) relabel(ctx context.Context) {
	_, _ = r.Labels(ctx) // the page that shows them says why they cannot be read
}

// Get opens a run, or returns it if it is open. fresh means that it was opened now: the caller must then call
// Follow in a goroutine of its own.
func (l *Library) Get(ctx context.Context, name string) (r *Run, fresh bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, false, errors.New("library: it is closed")
	}
	if r := l.open[name]; r != nil {
		if info, err := os.Stat(r.Path); err == nil && os.SameFile(info, r.info) {
			r.used = time.Now()
			return r, false, nil
		}
		delete(l.open, name) // it was deleted, or replaced by another run
		r.close()
	}
	path, ok := l.paths()[name]
	if !ok {
		return nil, false, fmt.Errorf("library: run %q: %w", name, ErrNotFound)
	}
	if r, err = openRun(ctx, name, path); err != nil {
		return nil, false, err
	}
	r.Kind, r.used, r.unlabelled = l.kindOf(r.Begun), time.Now(), l.Unlabelled
	l.makeRoom()
	l.open[name] = r
	return r, true, nil
}

// File returns the path of a run file. It opens nothing.
func (l *Library) File(name string) (path string, ok bool) {
	l.mu.Lock()
	r := l.open[name]
	l.mu.Unlock()
	if r != nil {
		return r.Path, true
	}
	path, ok = l.paths()[name]
	return path, ok
}

// maxOpen is how many runs are open at once, besides those that somebody watches.
const maxOpen = 16

// makeRoom closes the run that was not looked at for the longest time, if too many are open.
func (l *Library) makeRoom() {
	var oldest *Run
	n := 0
	for _, r := range l.open {
		if r.watched() {
			continue
		}
		if n++; oldest == nil || r.used.Before(oldest.used) {
			oldest = r
		}
	}
	if n >= maxOpen {
		delete(l.open, oldest.Name)
		oldest.close()
	}
}

// close closes a run. Pages that are being read may finish, or fail.
func (r *Run) close() {
	close(r.gone)
	_ = errors.Join(r.Index.Close(), r.Store.Close()) // they were only read
}

func openRun(ctx context.Context, name, path string) (_ *Run, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	store, err := sqlite.OpenRead(path)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, store.Close())
		}
	}()
	about, err := store.Outline(ctx)
	if errors.Is(err, sqlite.ErrDamaged) {
		if store.Salvage(ctx) == nil {
			about, err = store.Outline(ctx)
		}
	}
	if err != nil {
		return nil, err
	}
	if about.Begun == nil {
		return nil, fmt.Errorf("library: %s holds no run yet: %w", path, ErrNotFound)
	}
	x, err := index.Open(ctx, store, about.Begun.Run)
	if err != nil {
		return nil, err
	}
	return &Run{Name: name, Path: path, Store: store, Index: x, Begun: about.Begun, info: info, gone: make(chan struct{}), waiting: map[chan int]bool{}}, nil
}

// Close closes all runs.
func (l *Library) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.open {
		r.close()
	}
	l.open, l.closed = nil, true
}

// How often a run file is looked at: while a page waits for changes, and otherwise.
const (
	often  = 250 * time.Millisecond
	rarely = 2 * time.Second
)

// Follow keeps the index up to date, and tells pages that the run has grown, until ctx is done.
func (r *Run) Follow(ctx context.Context) {
	var state time.Time // of the live file; zero: there is none, or its process was killed
	for ctx.Err() == nil {
		n, err := r.Store.Entries()
		if err == nil && n != r.seen() {
			_, err = r.Index.Update(ctx) // what cannot be read is shown by the page that asks for it
			if errors.Is(err, sqlite.ErrDamaged) && r.Store.Lost() == nil && r.Store.Salvage(ctx) == nil {
				_, err = r.Index.Update(ctx)
			}
			r.grown(n)
		}
		r.relabel(ctx)
		_ = r.Index.MakeIndexes(ctx) // pages are slower without
		if at := changed(filelock.Beside(r.Path, live.Suffix)); at != state {
			state = at
			r.grown(r.seen())
		}
		pause := rarely
		if err == nil && r.watched() {
			pause = often
		}
		select {
		case <-ctx.Done():
		case <-r.gone:
			return
		case <-time.After(pause):
		}
	}
}

// changed returns when a live file was changed, or the zero time if there is none or it is too old.
func changed(path string) time.Time {
	info, err := os.Stat(path)
	if err != nil || time.Since(info.ModTime()) > live.MaxAge {
		return time.Time{}
	}
	return info.ModTime()
}

func (r *Run) seen() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.entries
}

func (r *Run) watched() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.waiting) > 0
}

// grown tells pages that the run has n entries.
func (r *Run) grown(n int) {
	r.mu.Lock()
	r.entries = n
	r.mu.Unlock()
	r.Tell()
}

// Tell wakes the pages that wait.
func (r *Run) Tell() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.waiting {
		select {
		case c <- r.entries:
		default: // it has one to read
		}
	}
}

// Watch returns a channel that receives the number of entries when the run has grown.
func (r *Run) Watch() (changed <-chan int, end func()) {
	c := make(chan int, 1)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting[c] = true
	return c, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.waiting, c)
	}
}

// Stamp changes whenever a run file is changed, added or removed.
func (l *Library) Stamp() string {
	var b strings.Builder
	names, paths := l.Names()
	for _, name := range names {
		fmt.Fprintln(&b, name, StateOf(paths[name]))
	}
	return b.String()
}

// Names returns the names of all runs in order, and their paths by name.
func (l *Library) Names() (out []string, paths map[string]string) {
	paths = l.paths()
	for name := range paths {
		out = append(out, name)
	}
	slices.Sort(out)
	return out, paths
}
