// Part filelock prevents two processes from writing one file.
//
// A lock belongs to a file, whatever names lead to it. Open opens a file and locks it. A Guard
// is for a file that must not be locked itself, such as a database. Identity tells whether two
// names lead to one file.
//
// Locks are advisory. The system releases them when the process ends, however it ends. They
// also exclude a second lock of the same process. They work among the processes of one
// machine. Nothing waits for a lock.

package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// ErrHeld means that another process, or this one, has the lock.
var ErrHeld = errors.New("filelock: another process holds the lock")

// ErrSymlink means that a symbolic link has the name of a lock file.
var ErrSymlink = errors.New("filelock: the lock file is a symbolic link")

// Lock is a lock on a file that exists only for it.
type Lock struct{ file *os.File }

// Take creates the file at path and locks it, or returns ErrHeld. It follows no symbolic link where the system allows
// that: a link in a folder that others write could make it create a file anywhere.
func Take(path string) (*Lock, error) {
	f, err := open(path, noFollow)
	if err != nil {
		if info, e := os.Lstat(path); e == nil && info.Mode()&fs.ModeSymlink != 0 && !errors.Is(err, ErrHeld) {
			err = fmt.Errorf("%w: delete %s", ErrSymlink, path)
		}
		return nil, err
	}
	return &Lock{f}, nil
}

// OpenLocked opens the file at path to read and write it, creates it if it does not exist, and locks it
// until it is closed. It returns ErrHeld if the file is locked.
func OpenLocked(path string) (*os.File, error) { return open(path, 0) }

func open(path string, flag int) (*os.File, error) {
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|flag, 0o644)
		if err != nil {
			return nil, err
		}
		if err := tryLock(f); err != nil {
			return nil, errors.Join(err, f.Close())
		}
		if same(f, path) {
			return f, nil
		}
		// The last owner deleted or replaced the file before we locked it: the next process
		// would lock another file.
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

// Release deletes the file and releases the lock. It does nothing if l is nil.
func (l *Lock) Release() error {
	if l == nil {
		return nil
	}
	// Delete it first if the system allows it, while nobody else can lock it.
	removed := os.Remove(l.file.Name())
	err := l.file.Close()
	if removed != nil && !errors.Is(removed, fs.ErrNotExist) {
		_ = os.Remove(l.file.Name()) // some systems do not delete an open file; it does no harm
	}
	return err
}

// Identity returns an id that is the same for every name of a file on this machine, and how many
// names (hard links) the file has.
func Identity(path string) (id string, links uint64, err error) { return identity(path) }

// Resolve follows symbolic links, so that every path to a file gives the same name. The file may be
// missing.
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

// Beside returns the name of a file that belongs to the file at path, whatever path leads to that: its own name, and
// suffix.
func Beside(path, suffix string) string { return Resolve(path) + suffix }

// Folder returns the user's folder for lock files that are named by identity.
func Folder() (string, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		base = os.TempDir()
	}
	dir := filepath.Join(base, "parley", "locks")
	return dir, os.MkdirAll(dir, 0o700)
}
