package viewer

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

	"parley/internal/live"
	"parley/internal/store/sqlite"
	"parley/internal/view/index"
	"parley/journal"
	"parley/world"
)

// runs are the run files that a viewer shows. They are opened when somebody looks at them.
type runs struct {
	files   []string // that the user named
	folders []string

	mu   sync.Mutex
	open map[string]*run // by name
}

// Extension is the extension of run files, by which they are found in folders.
const Extension = ".parley"

func newRuns(paths []string) (*runs, error) {
	rs := &runs{open: map[string]*run{}}
	for _, p := range paths {
		info, err := os.Stat(p)
		switch {
		case err != nil:
			return nil, fmt.Errorf("viewer: %w", err)
		case info.IsDir():
			rs.folders = append(rs.folders, filepath.Clean(p))
		default:
			rs.files = append(rs.files, filepath.Clean(p))
		}
	}
	return rs, nil
}

// single returns the name of the run if the viewer shows only one file.
func (rs *runs) single() (name string, ok bool) {
	if len(rs.folders) > 0 || len(rs.files) != 1 {
		return "", false
	}
	return filepath.Base(rs.files[0]), true
}

// The limits of a search for run files in a folder.
const (
	maxDepth = 3
	maxFiles = 10_000
)

// paths returns the path of every run file by its name: its base name, its path in a folder, or its
// whole path where two would have the same name.
func (rs *runs) paths() map[string]string {
	out := map[string]string{}
	add := func(name, path string) {
		if _, taken := out[name]; taken {
			name = path
		}
		out[name] = path
	}
	for _, f := range rs.files {
		add(filepath.Base(f), f)
	}
	for _, folder := range rs.folders {
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

// run is an open run.
type run struct {
	name, path string
	store      *sqlite.Store
	index      *index.Index
	begun      *journal.Begun
	kind       world.Kind

	mu      sync.Mutex
	entries int               // of the run, when it was last looked at
	waiting map[chan int]bool // pages that wait for a change
	stats   statistics
}

// get opens a run, or returns it if it is open.
func (v *Viewer) get(ctx context.Context, name string) (*run, error) {
	rs := v.runs
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if r := rs.open[name]; r != nil {
		return r, nil
	}
	path, ok := rs.paths()[name]
	if !ok {
		return nil, fmt.Errorf("viewer: run %q: %w", name, errNotFound)
	}
	r, err := openRun(ctx, name, path)
	if err != nil {
		return nil, err
	}
	r.kind = v.cfg.KindOf(r.begun)
	rs.open[name] = r
	v.wg.Go(func() { r.follow(v.ctx) })
	return r, nil
}

func openRun(ctx context.Context, name, path string) (_ *run, err error) {
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
		return nil, fmt.Errorf("viewer: %s holds no run yet: %w", path, errNotFound)
	}
	x, err := index.Open(store, about.Begun.Run)
	if err != nil {
		return nil, err
	}
	return &run{name: name, path: path, store: store, index: x, begun: about.Begun, waiting: map[chan int]bool{}}, nil
}

func (rs *runs) close() error {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	var errs []error
	for _, r := range rs.open {
		errs = append(errs, r.index.Close(), r.store.Close())
	}
	rs.open = nil
	return errors.Join(errs...)
}

// How often a run file is looked at: while a page waits for changes, and otherwise.
const (
	often  = 250 * time.Millisecond
	seldom = 2 * time.Second
)

// follow keeps the index up to date, and tells pages that the run has grown, until ctx is done.
func (r *run) follow(ctx context.Context) {
	var state time.Time // of the live file
	for ctx.Err() == nil {
		n, err := r.store.Entries()
		if err == nil && n != r.seen() {
			_, err = r.index.Update(ctx) // what cannot be read is shown by the page that asks for it
			r.grown(n)
		}
		if at := changed(r.path + live.Suffix); !at.Equal(state) {
			state = at
			r.grown(r.seen())
		}
		pause := seldom
		if err == nil && r.watched() {
			pause = often
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// changed returns when a file was changed, or the zero time if there is none.
func changed(path string) time.Time {
	info, err := os.Stat(path)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

func (r *run) seen() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.entries
}

func (r *run) watched() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.waiting) > 0
}

// grown tells pages that the run has n entries.
func (r *run) grown(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.entries = n
	r.tell()
}

// tell wakes the pages that wait. The caller holds mu.
func (r *run) tell() {
	for c := range r.waiting {
		select {
		case c <- r.entries:
		default: // it has one to read
		}
	}
}

// watch returns a channel that receives the number of entries when the run has grown.
func (r *run) watch() (changed <-chan int, end func()) {
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

// names returns the names of all runs in order.
func (rs *runs) names() (out []string, paths map[string]string) {
	paths = rs.paths()
	for name := range paths {
		out = append(out, name)
	}
	slices.Sort(out)
	return out, paths
}
