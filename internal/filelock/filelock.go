// Package filelock keeps two processes from writing one file.
//
// A lock belongs to a file, whatever names lead to it. Open opens a file and locks it. Take is
// for a file that must not be locked itself, such as a database that locks parts of itself: it
// locks another file that stands for it. Identity tells whether two names lead to one file.
//
// Locks are advisory, are lifted by the system when the process ends, however it ends, and
// also keep out a second lock of the same process. They hold among the processes of one
// machine. It is not for short waits: nothing waits for a lock.
package filelock

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// ErrHeld means that somebody else has the lock.
var ErrHeld = errors.New("filelock: another process holds the lock")

// Lock is a lock on a file of its own.
type Lock struct{ file *os.File }

// Take makes the file at path and locks it, or returns ErrHeld.
func Take(path string) (*Lock, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	return &Lock{f}, nil
}

// Open opens the file at path to read and write it, makes it where there is none, and locks
// it until it is closed; or returns ErrHeld.
func Open(path string) (*os.File, error) {
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
		if err != nil {
			return nil, err
		}
		if err := tryLock(f); err != nil {
			return nil, errors.Join(err, f.Close())
		}
		if same(f, path) {
			return f, nil
		}
		// Who had it before deleted or replaced it between our opening and our locking: the
		// next one to come would lock another file than we did.
		_ = f.Close()
	}
}

func same(f *os.File, path string) bool {
	a, err := f.Stat()
	if err != nil {
		return false
	}
	b, err := os.Stat(path)
	return err == nil && os.SameFile(a, b)
}

// Release deletes the file and lets others lock. It does nothing for a Lock that is nil.
func (l *Lock) Release() error {
	if l == nil {
		return nil
	}
	// It is deleted first where the system allows it, while nobody else can have it.
	removed := os.Remove(l.file.Name())
	err := l.file.Close()
	if removed != nil && !errors.Is(removed, fs.ErrNotExist) {
		_ = os.Remove(l.file.Name()) // a file in use cannot be deleted everywhere; left behind, it does no harm
	}
	return err
}

// Identity is the same for every name of a file, on one machine, and links is how many
// names it has beside symbolic links.
func Identity(path string) (id string, links uint64, err error) { return identity(path) }

// Resolve follows symbolic links, so that every path to a file gives the same name. The file
// itself may be missing.
func Resolve(path string) string {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	} else if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		path = filepath.Join(dir, filepath.Base(path))
	}
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	return path
}

// Folder is where files are that stand for others by their identity: a folder of the user's.
func Folder() (string, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		base = os.TempDir()
	}
	dir := filepath.Join(base, "parley", "locks")
	return dir, os.MkdirAll(dir, 0o700)
}
