// Package runfile keeps a run's journal in one SQLite file: the run file.
//
// Any SQLite tool can read the file, even while the run is played: docs/reference/run-file.md describes
// the views for people. A text that occurs in many calls is stored once.
//
// What it promises: when Append returns without an error, all its entries are on the disk and
// survive a power failure; otherwise none of them is in the file. After SyncLater, entries
// appended since the last Sync survive the end of the process, but not a power failure.
// One process writes at a time. A second writer is refused, and a writer that was replaced
// gets journal.ErrFenced. A file that is foreign, damaged or of another format version is
// refused and not changed. Readers never make a writer wait.
//
// It does not decide what is written, and does not group entries: one Append is one commit.
//
// There is a file for each kind of row, which has what writes and what reads it: events.go, stages.go,
// turns.go, replies.go, outcomes.go, state.go and texts.go. They are built on row.go, which adds and
// checks checksums. writer.go commits; read.go, stream.go, episode.go and list.go are ways to
// read; verify.go finds damage.
package runfile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"zombiezen.com/go/sqlite"

	"parley/internal/kit/files"
	"parley/journal"
)

// Mode says whether the file that Open opens must exist.
type Mode int

// The modes.
const (
	Either Mode = iota // resume the run if the file exists, else create the file
	Create             // the file must not exist
	Resume             // the file must exist
)

// Store is a run file. It may be used from several goroutines.
type Store struct {
	path    string
	readers pool

	mu     sync.Mutex // held during an Append
	writer *writer    // nil: opened for reading
	guard  *files.Guard
	closed bool
}

// Open opens a run file to write it, or creates it. Its errors name the file and say what you
// can do. Callers can distinguish ErrPlaying, ErrForeign, ErrDamaged, ErrVersion,
// fs.ErrExist and fs.ErrNotExist. Append returns ErrGone if the file is no longer at its path.
func Open(ctx context.Context, path string, mode Mode) (*Store, error) {
	return open(ctx, path, mode, files.TakeGuard)
}

// open is Open with a function that takes the lock, so that tests can do without one.
func open(ctx context.Context, path string, mode Mode, take func(target string) (*files.Guard, error)) (_ *Store, err error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	if _, err := admit(path, mode); err != nil {
		return nil, err
	}
	target := files.Resolve(path)
	guard, err := take(target)
	if err != nil {
		return nil, lockError(path, err, "the folder cannot be written (allow it, or name a file in another folder)")
	}
	s := &Store{path: path, guard: guard, readers: pool{path: target}}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.guard.Release())
		}
	}()
	exists, err := admit(path, mode) // again: from now on nobody else writes
	if err != nil {
		return nil, err
	}
	if !exists {
		if err := create(path, target); err != nil {
			return nil, err
		}
	}
	if err := lockError(path, s.guard.Extend(target), "lock"); err != nil {
		return nil, err
	}
	if s.writer, err = newWriter(target); err != nil {
		return nil, explain(path, opening, err)
	}
	s.readers.keys = s.writer.keys
	return s, nil
}

// lockError explains an error of a files.Guard. It returns nil for nil.
func lockError(path string, err error, otherwise string) error {
	links, several := errors.AsType[*files.LinksError](err)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, files.ErrHeld):
		return fmt.Errorf("%s: %w: wait until it is done, or stop it; you can read the file meanwhile", path, ErrPlaying)
	case errors.Is(err, files.ErrSymlink):
		return fmt.Errorf("%s: %w", path, err)
	case several:
		// The name of SQLite's log depends on the name of the file: what is written under one name is not seen under another.
		return fmt.Errorf("%s has %d names (hard links), and is safe to play only with one: delete the others, or copy the file and play the copy", path, links.Links)
	default:
		return fmt.Errorf("%s: %s: %w", path, otherwise, err)
	}
}

// OpenRead opens a run file to read it, even while another process writes it. It also works on
// media that cannot be written, if the run was closed properly. Append on it fails.
func OpenRead(path string) (*Store, error) {
	if _, err := admit(path, Resume); err != nil {
		return nil, err
	}
	s := &Store{path: path, readers: pool{path: files.Resolve(path)}}
	r, err := s.readers.take()
	if err != nil {
		return nil, explain(path, opening, err)
	}
	s.readers.give(r)
	return s, nil
}

// Played reports whether a process plays the run at path: it has the file open to write.
func Played(path string) bool { return files.Guarded(files.Resolve(path)) }

// pathError says that there is no run file, or one already. Its text does not repeat that of its cause.
type pathError struct {
	text  string
	cause error
}

func (e *pathError) Error() string { return e.text }
func (e *pathError) Unwrap() error { return e.cause }

// admit checks what is at path, without changing it, and reports whether a file is there.
func admit(path string, mode Mode) (exists bool, err error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && mode == Resume:
		return false, &pathError{path + ": there is no such run file", fs.ErrNotExist}
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	case info.IsDir():
		return false, fmt.Errorf("%s is a folder, not a run file: name a file in it", path)
	case !info.Mode().IsRegular():
		return false, fmt.Errorf("%s is not a regular file: name another for the run", path)
	case mode == Create:
		return false, &pathError{path + " exists already: resume it, or name another file", fs.ErrExist}
	}
	return true, inspect(path, info.Size())
}

// inspect refuses a file that is not a run file of this format version. It reads the file
// through SQLite, on a connection that takes no lock and assumes that nobody writes. So
// nothing is changed, not even by a rollback of what another program left. And closing a
// file of our own would release the POSIX locks of every other connection of this process.
func inspect(path string, size int64) error {
	if size == 0 {
		return fmt.Errorf("%s is %w: it is empty: delete it, or name another file", path, ErrForeign)
	}
	id, version, err := marks(path, true)
	if sqlite.ErrCode(err).ToPrimary() == sqlite.ResultCorrupt && pending(files.Resolve(path)) {
		// SQLite is moving pages from the log to the file: read the log too.
		id, version, err = marks(path, false)
	}
	switch {
	case sqlite.ErrCode(err).ToPrimary() == sqlite.ResultNotADB:
		return fmt.Errorf("%s is %w: it was not written by parley, and nothing in it was changed: name another file", path, ErrForeign)
	case err != nil:
		return explain(path, opening, err)
	case id != application:
		return fmt.Errorf("%s is %w: it is an SQLite database of another program, and nothing in it was changed: name another file", path, ErrForeign)
	case version < 1:
		return damaged(path, "open", fmt.Errorf("its format version is %d", version))
	case version != journal.Version:
		return fmt.Errorf("%s: %w (%d; this program reads version %d): open it with the parley that wrote it", path, ErrVersion, version, journal.Version)
	}
	return nil
}

// create makes an empty run file. It makes the file under another name and renames it when it
// is complete. target is path without symbolic links.
func create(path, target string) (err error) {
	if pending(target) { // SQLite would use it as the log of the new file
		return fmt.Errorf("%s: create: beside it is %s-wal, the log of a run file that is gone: put that file back, or delete the log, or name another file", path, target)
	}
	temp := target + "-new"
	if err := os.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: create: %w", path, err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(temp)
		}
	}()
	err = createSchema(temp, func(c *sqlite.Conn) error { return (&writer{rows: inserts{Conn: c}}).putTotals() })
	if err != nil {
		return explain(path, "create", err)
	}
	if err := os.Rename(temp, target); err != nil {
		return fmt.Errorf("%s: create: %w", path, err)
	}
	return files.SyncFolder(filepath.Dir(target))
}

// pending reports whether a file has a write-ahead log that is not empty.
func pending(path string) bool {
	info, err := os.Stat(path + "-wal")
	return err == nil && info.Size() > 0
}

// Path returns the path of the file.
func (s *Store) Path() string { return s.path }

// Size returns how many bytes the file has.
func (s *Store) Size() int64 {
	info, err := os.Stat(s.path)
	if err != nil {
		return 0 // it is gone
	}
	return info.Size()
}

// Expanded returns how many bytes readers may make of the file unless their user asks for more. A text that many calls share is
// stored once: a conversation that repeats itself in every call becomes many times as large, and a file that somebody made for
// it, a million times.
func (s *Store) Expanded() int64 { return max(256e6, 64*s.Size()) }

// Append makes entries durable, all or none. It returns journal.ErrFenced if another process
// has taken over the run.
func (s *Store) Append(ctx context.Context, entries ...journal.Entry) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return s.write("append", func(w *writer) error { return w.commit(entries) })
}

// SyncLater makes Append return when every process can see the entries, but before they are on
// the disk. Sync puts them there. A power failure loses entries since the last Sync, the
// latest first.
func (s *Store) SyncLater() error { return s.write("sync", (*writer).syncLater) }

// Sync puts on the disk what SyncLater left, as far as it was appended before, and from time to time folds the
// log into the file. Append does not wait for it.
func (s *Store) Sync() error {
	var y *syncer
	var commits int64
	err := s.write("sync", func(w *writer) error {
		y, commits = w.syncer, w.commits
		return nil
	})
	if err != nil || y == nil {
		return err
	}
	if err := y.sync(commits); err != nil {
		return explain(s.path, "sync", err)
	}
	y.fold(commits)
	return nil
}

func (s *Store) write(what string, do func(*writer) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return fmt.Errorf("%s: %s: the run file is closed", s.path, what)
	case s.writer == nil:
		return fmt.Errorf("%s: %s: the run file was opened for reading", s.path, what)
	}
	return explain(s.path, what, do(s.writer))
}

// read calls f with one state of the file, whatever is written meanwhile.
func (s *Store) read(f func(*reader) error) error { return explain(s.path, "read", s.readers.with(f)) }

// Close folds the log into the file and releases the file. Reads in progress may finish; the
// log remains until then.
func (s *Store) Close() error { return s.end(func() error { return nil }) }

// Discard closes a run file that is written and has no entries, and removes it. Nobody can open it meanwhile.
func (s *Store) Discard() error { return s.end(func() error { return os.Remove(s.path) }) }

// end closes the file, and calls last before others can write it.
func (s *Store) end(last func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	err := s.readers.close()
	if s.writer != nil {
		err = errors.Join(err, s.writer.close(), last(), s.guard.Release())
	}
	return explain(s.path, "close", err)
}

var _ journal.Journal = (*Store)(nil)
