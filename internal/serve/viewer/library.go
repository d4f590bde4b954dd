package viewer

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

	"parley/internal/kit/files"
	"parley/internal/run/control"
	"parley/internal/run/results"
	"parley/internal/run/runfile"
	"parley/journal"
	"parley/world"
)

// library is the run files of some paths. They are opened when somebody looks at them.
type library struct {
	files   []string // that the user named
	folders []string

	kindOf func(*journal.Begun) world.Kind
	// Unlabelled means that runs have no labels, for pages that are published. Set it before Get.
	Unlabelled bool

	adding chan struct{} // holds one value while texts are added to the index of a run
	mu     sync.Mutex
	open   map[string]*Run          // by name
	busy   map[string]chan struct{} // runs that are being opened or closed, by name; closed when that is done
	closed bool
}

// errNoRun means that there is no such run, and errUnreadable that nothing of its file can be read.
var (
	errNoRun      = errors.New("there is no such run")
	errUnreadable = errors.New("the run cannot be opened")
)

// runFileExtension is the extension of run files, by which they are found in folders.
const runFileExtension = ".parley"

// newLibrary returns the library of some run files, and of folders with run files. kindOf returns the kind of a run, or
// zero if it is unknown. newLibrary fails if a path does not exist, or is a file that is not a run file. In a folder there may be
// such files: their pages say so.
func newLibrary(paths []string, kindOf func(*journal.Begun) world.Kind) (*library, error) {
	l := &library{open: map[string]*Run{}, busy: map[string]chan struct{}{}, adding: make(chan struct{}, 1), kindOf: kindOf}
	for _, p := range paths {
		info, err := os.Stat(p)
		switch {
		case err != nil:
			return nil, err
		case info.IsDir():
			if real, err := filepath.EvalSymlinks(p); err == nil {
				p = real // WalkDir does not follow a link
			}
			l.folders = append(l.folders, filepath.Clean(p))
		default:
			if err := checkRunFile(p); err != nil {
				return nil, err
			}
			l.files = append(l.files, filepath.Clean(p))
		}
	}
	return l, nil
}

// checkRunFile refuses a file that is not a run file. A damaged one may be opened: its pages say what is lost.
func checkRunFile(path string) error {
	store, err := runfile.OpenRead(path)
	if err != nil {
		if errors.Is(err, runfile.ErrDamaged) {
			return nil
		}
		return err
	}
	return store.Close()
}

// Single returns the name of the run if there is only one file.
func (l *library) Single() (name string, ok bool) {
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
func (l *library) paths() map[string]string {
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
			case d.Type().IsRegular() && filepath.Ext(path) == runFileExtension:
				add(filepath.ToSlash(rel), path)
			}
			return nil
		})
	}
	return out
}

// errClosed means that a run was asked for too late.
var errClosed = errors.New("it is closed")

// Get opens a run, or returns it if it is open. fresh means that it was opened now: the caller must then call
// Follow in a goroutine of its own. Nobody waits for a run that is being opened or closed, but those who want that one.
func (l *library) Get(ctx context.Context, name string) (r *Run, fresh bool, err error) {
	r, old, err := l.claim(ctx, name)
	if r != nil || err != nil {
		return r, false, err
	}
	if old != nil {
		old.close()
	}
	r, err = l.read(ctx, name)
	l.mu.Lock()
	closed := l.closed
	var out []*Run
	if err == nil && !closed {
		out = l.makeRoom()
		l.open[name] = r
	}
	l.release(name)
	l.mu.Unlock()
	switch {
	case err != nil:
		return nil, false, err
	case closed:
		r.close()
		return nil, false, errClosed
	}
	for _, one := range out {
		one.close()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, one := range out {
		l.release(one.Name)
	}
	return r, true, nil
}

// claim returns a run that is open. If it is not, the caller must open it and call release; old is then the run of that name
// that must be closed before: its file was deleted, or replaced by another run.
func (l *library) claim(ctx context.Context, name string) (r, old *Run, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.busy[name] != nil {
		done := l.busy[name]
		l.mu.Unlock()
		select {
		case <-done:
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		l.mu.Lock()
		if err != nil {
			return nil, nil, err
		}
	}
	if l.closed {
		return nil, nil, errClosed
	}
	if r = l.open[name]; r != nil && r.there() {
		r.used = time.Now()
		return r, nil, nil
	}
	delete(l.open, name)
	l.busy[name] = make(chan struct{})
	return nil, r, nil
}

// release says that a run was opened or closed.
func (l *library) release(name string) {
	close(l.busy[name])
	delete(l.busy, name)
}

// read opens the file of a run.
func (l *library) read(ctx context.Context, name string) (*Run, error) {
	path, ok := l.paths()[name]
	if !ok {
		return nil, fmt.Errorf("run %q: %w", name, errNoRun)
	}
	r, err := openRun(ctx, name, path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnreadable, err)
	}
	r.Kind, r.used, r.unlabelled, r.adding = l.kindOf(r.Begun), time.Now(), l.Unlabelled, l.adding
	return r, nil
}

// File returns the path of a run file. It opens nothing.
func (l *library) File(name string) (path string, ok bool) {
	l.mu.Lock()
	r := l.open[name]
	l.mu.Unlock()
	if r != nil {
		return r.Path, true
	}
	path, ok = l.paths()[name]
	return path, ok
}

// How many runs are open at once, besides those that somebody watches: those whose texts are still being added to the index, and
// others.
const (
	maxBehind = 32
	maxOpen   = 16
)

// makeRoom removes the runs that were not looked at for the longest time, if too many are open. The caller must close them, and
// then call release for each.
func (l *library) makeRoom() (out []*Run) {
	var behind, others []*Run
	for _, r := range l.open {
		switch {
		case r.watched():
		case r.behind.Load():
			behind = append(behind, r)
		default:
			others = append(others, r)
		}
	}
	for _, of := range []struct {
		runs  []*Run
		limit int
	}{{behind, maxBehind}, {others, maxOpen - 1}} {
		slices.SortFunc(of.runs, func(a, b *Run) int { return a.used.Compare(b.used) })
		out = append(out, of.runs[:max(0, len(of.runs)-of.limit)]...)
	}
	for _, r := range out {
		delete(l.open, r.Name)
		l.busy[r.Name] = make(chan struct{})
	}
	return out
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
	store, err := runfile.OpenRead(path)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, store.Close())
		}
	}()
	about, err := store.Outline(ctx)
	if errors.Is(err, runfile.ErrDamaged) {
		if err = store.Salvage(ctx); err == nil {
			about, err = store.Outline(ctx)
		}
	}
	if err != nil {
		return nil, err
	}
	if about.Begun == nil {
		return nil, fmt.Errorf("%s holds no run yet: %w", path, errNoRun)
	}
	x, err := results.OpenIndex(ctx, store, about.Begun.Run)
	if err != nil {
		return nil, err
	}
	return &Run{Name: name, Path: path, Store: store, Growing: newGrowing(store), Index: x, Begun: about.Begun, info: info, gone: make(chan struct{}), waiting: map[chan int]bool{}, looked: make(chan struct{}, 1)}, nil
}

// Close closes all runs.
func (l *library) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.open {
		r.close()
	}
	l.open, l.closed = nil, true
}

// Stamp changes whenever a run file is changed, added or removed.
func (l *library) Stamp() string {
	var b strings.Builder
	names, paths := l.Names()
	for _, name := range names {
		fmt.Fprintln(&b, name, runFileStateOf(paths[name]), liveChanged(files.Beside(paths[name], control.LiveSuffix)).IsZero())
	}
	return b.String()
}

// Names returns the names of all runs in order, and their paths by name.
func (l *library) Names() (out []string, paths map[string]string) {
	paths = l.paths()
	for name := range paths {
		out = append(out, name)
	}
	slices.Sort(out)
	return out, paths
}

// runFileState tells whether a run file was changed: the times and sizes of the file and of SQLite's log beside it.
type runFileState struct{ file, log fileState }

// runFileStateOf returns the state of a run file.
func runFileStateOf(path string) runFileState {
	return runFileState{fileStateOf(path), fileStateOf(path + "-wal")}
}

// Changed returns when the file was last changed.
func (s runFileState) Changed() time.Time {
	if s.log.size > 0 && s.log.at.After(s.file.at) {
		return s.log.at
	}
	return s.file.at
}

// fileState tells whether a file was changed.
type fileState struct {
	at   time.Time
	size int64
}

func fileStateOf(path string) fileState {
	info, err := os.Stat(path)
	if err != nil {
		return fileState{}
	}
	return fileState{info.ModTime(), info.Size()}
}
