// Package sqlite keeps a run's journal in one SQLite file: the run file.
//
// Any SQLite tool can read it, while the run is played too: see docs/reference/run-file.md for the
// views made for people. What a conversation says again at every turn is stored once.
//
// What it promises: Append returns only when its entries are on the disk, all of them,
// so that they survive a power failure; or it returns an error and none of them is there.
// After SyncLater, what was appended since the last Sync survives the end of the process only.
// One process writes at a time; a second is refused, and one that lost its place without
// knowing gets journal.ErrFenced. A file that is foreign, damaged or of a newer format is
// refused without a byte of it being changed. Readers never make a writer wait.
//
// What it is not for: it does not decide what is written, and it groups nothing: one
// Append is one commit, and the engine's recorder hands over whatever waits.
package sqlite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"

	"parley/internal/filelock"
	"parley/journal"
)

// Mode says what Open may find.
type Mode int

// The modes.
const (
	Either Mode = iota // play on if the file exists, else create it
	Create             // the file must not exist
	Resume             // the file must exist
)

// Store is a run file. It may be used from several goroutines.
type Store struct {
	path    string
	readers pool

	mu     sync.Mutex // one Append at a time
	writer *writer    // nil: opened for reading
	lock   *lock
	closed bool
}

// Open opens a run file to play on, or creates it. The errors it returns name the file and
// say what can be done; some can be told apart: ErrPlaying, ErrForeign, ErrDamaged,
// ErrVersion, fs.ErrExist, fs.ErrNotExist.
func Open(ctx context.Context, path string, mode Mode) (*Store, error) {
	return open(ctx, path, mode, takeLock)
}

// open is Open with the lock to take, so that tests can go without.
func open(ctx context.Context, path string, mode Mode, take func(path, target string) (*lock, error)) (_ *Store, err error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	if _, err := admit(path, mode); err != nil {
		return nil, err
	}
	target := filelock.Resolve(path)
	l, err := take(path, target)
	if err != nil {
		return nil, err
	}
	s := &Store{path: path, lock: l, readers: pool{path: target, keys: newKeys()}}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.lock.release())
		}
	}()
	exists, err := admit(path, mode) // again: nobody else writes from here on
	if err != nil {
		return nil, err
	}
	if !exists {
		if err := create(path, target); err != nil {
			return nil, err
		}
	}
	if err := cmp.Or(s.lock.extend(path, target), checkLog(path, target)); err != nil {
		return nil, err
	}
	if s.writer, err = newWriter(target, s.readers.keys); err != nil {
		return nil, explain(path, "open", err)
	}
	return s, nil
}

// OpenRead opens a run file to read it, whether somebody plays it or not. It works on
// media that cannot be written too, if the run was closed in good order. Append on it fails.
func OpenRead(path string) (*Store, error) {
	if _, err := admit(path, Resume); err != nil {
		return nil, err
	}
	target := filelock.Resolve(path)
	if err := checkLog(path, target); err != nil {
		return nil, err
	}
	s := &Store{path: path, readers: pool{path: target}}
	r, err := s.readers.take()
	if err != nil {
		return nil, explain(path, "open", err)
	}
	s.readers.give(r)
	return s, nil
}

// admit looks at what is at path, without changing it, and says whether there is a file.
func admit(path string, mode Mode) (exists bool, err error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && mode == Resume:
		return false, fmt.Errorf("sqlite: %s: there is no such run file: %w", path, fs.ErrNotExist)
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("sqlite: %w", err)
	case info.IsDir():
		return false, fmt.Errorf("sqlite: %s is a folder, not a run file: name a file in it", path)
	case !info.Mode().IsRegular():
		return false, fmt.Errorf("sqlite: %s is not a regular file: name another for the run", path)
	case mode == Create:
		return false, fmt.Errorf("sqlite: %s exists already: resume it, or name another file: %w", path, fs.ErrExist)
	}
	return true, inspect(path, info.Size())
}

// Path is where the file is.
func (s *Store) Path() string { return s.path }

// Append makes entries durable, all or none. It returns journal.ErrFenced if another
// process has taken over the run.
func (s *Store) Append(ctx context.Context, entries ...journal.Entry) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return s.write("append", func(w *writer) error { return w.commit(entries) })
}

// SyncLater has Append return when its entries are in the file as every process sees it, but
// perhaps not on the disk yet. Sync puts them there: a power failure loses the entries since
// then, the later of them first.
func (s *Store) SyncLater() error { return s.write("sync", (*writer).syncLater) }

// Sync puts on the disk what SyncLater has left.
func (s *Store) Sync() error { return s.write("sync", (*writer).sync) }

// write has the writer do something.
func (s *Store) write(what string, do func(*writer) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return fmt.Errorf("sqlite: %s: %s: the run file is closed", s.path, what)
	case s.writer == nil:
		return fmt.Errorf("sqlite: %s: %s: the run file was opened for reading", s.path, what)
	}
	if err := do(s.writer); err != nil {
		return explain(s.path, what, err)
	}
	return nil
}

// Close folds everything into the one file and frees it for others. Whoever still reads
// may finish; the file is one only then.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	err := s.readers.close()
	if s.writer != nil {
		err = errors.Join(err, s.writer.close(), s.lock.release())
	}
	if err != nil {
		return explain(s.path, "close", err)
	}
	return nil
}

var _ journal.Journal = (*Store)(nil)
