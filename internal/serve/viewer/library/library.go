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
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"parley/internal/filelock"
	"parley/internal/live"
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
	adding sync.Mutex      // held while texts are added to the index of a run
	open   map[string]*Run // by name
	closed bool
}

// ErrNotFound means that there is no such run, and ErrUnreadable that nothing of its file can be read.
var (
	ErrNotFound   = errors.New("there is no such run")
	ErrUnreadable = errors.New("the run cannot be opened")
)

// Extension is the extension of run files, by which they are found in folder.
const Extension = ".parley"

// New returns the library of some run files, and of folders with run files. kindOf returns the kind of a run, or
// zero if it is unknown. New fails if a path does not exist, or is a file that is not a run file. In a folder there may be
// such files: their pages say so.
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
			if err := check(p); err != nil {
				return nil, err
			}
			l.files = append(l.files, filepath.Clean(p))
		}
	}
	return l, nil
}

// check refuses a file that is not a run file. A damaged one may be opened: its pages say what is lost.
func check(path string) error {
	store, err := sqlite.OpenRead(path)
	if err != nil {
		if errors.Is(err, sqlite.ErrDamaged) {
			return nil
		}
		return err
	}
	return store.Close()
}

// Single returns the name of the run if there is only one file.
func (l *Library) Single() (name string, ok bool) {
	if len(l.folders) > 0 || len(l.files) != 1 {
		return "", false
	}
	return nameOf(filepath.Base(l.files[0])), true
}

// The limits of a search for run files in a folder.
const (
	maxDepth = 3
	maxFiles = 10_000
)

// nameOf returns the name of a run at a path. Pages and forms hold only UTF-8, so other bytes are written as \xff.
func nameOf(path string) string {
	if utf8.ValidString(path) {
		return path
	}
	quoted := strconv.Quote(path)
	return quoted[1 : len(quoted)-1]
}

// paths returns the path of every run file by its name: its base name, its path in a folder, or its
// whole path where two would have the same name.
func (l *Library) paths() map[string]string {
	out := map[string]string{}
	add := func(name, path string) {
		if _, taken := out[nameOf(name)]; taken {
			name = path
		}
		out[nameOf(name)] = path
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

// Get opens a run, or returns it if it is open. fresh means that it was opened now: the caller must then call
// Follow in a goroutine of its own.
func (l *Library) Get(ctx context.Context, name string) (r *Run, fresh bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, false, errors.New("library: it is closed")
	}
	if r := l.open[name]; r != nil {
		if r.there() {
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
		return nil, false, fmt.Errorf("library: %w: %w", ErrUnreadable, err)
	}
	r.Kind, r.used, r.unlabelled = l.kindOf(r.Begun), time.Now(), l.Unlabelled
	r.adding = &l.adding
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
		if err = store.Salvage(ctx); err == nil {
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
	return &Run{Name: name, Path: path, Store: store, Growing: newGrowing(store), Index: x, Begun: about.Begun, info: info, gone: make(chan struct{}), waiting: map[chan int]bool{}, looked: make(chan struct{}, 1)}, nil
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

// Stamp changes whenever a run file is changed, added or removed.
func (l *Library) Stamp() string {
	var b strings.Builder
	names, paths := l.Names()
	for _, name := range names {
		fmt.Fprintln(&b, name, StateOf(paths[name]), changed(filelock.Beside(paths[name], live.Suffix)).IsZero())
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
