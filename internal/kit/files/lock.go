package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// ErrHeld means that another process, or this one, has the lock.
var ErrHeld = errors.New("another process holds the lock")

// ErrSymlink means that a symbolic link has the name of a lock file.
var ErrSymlink = errors.New("the lock file is a symbolic link")

// Lock is a lock on a file that exists only for it. OpenLocked locks a file itself, and a Guard is for a file that must not
// be locked, such as a database.
//
// A lock belongs to a file, whatever names lead to it. Locks are advisory. The system releases them when the process ends,
// however it ends. They also exclude a second lock of the same process. They work among the processes of one machine.
// Nothing waits for a lock.
type Lock struct{ file *os.File }

// TakeLock creates the file at path and locks it, or returns ErrHeld. It follows no symbolic link where the system allows
// that: a link in a folder that others write could make it create a file anywhere.
func TakeLock(path string) (*Lock, error) {
	f, err := openLocked(path, noFollow)
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
func OpenLocked(path string) (*os.File, error) { return openLocked(path, 0) }

func openLocked(path string, flag int) (*os.File, error) {
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|flag, 0o644)
		if err != nil {
			return nil, err
		}
		if err := tryLock(f); err != nil {
			return nil, errors.Join(err, f.Close())
		}
		if isSameFile(f, path) {
			return f, nil
		}
		// The last owner deleted or replaced the file before we locked it: the next process
		// would lock another file.
		_ = f.Close()
	}
}

func isSameFile(f *os.File, path string) bool {
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

// lockFolder returns the user's folder for lock files that are named by identity.
func lockFolder() (string, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		base = os.TempDir()
	}
	dir := filepath.Join(base, "parley", "locks")
	return dir, os.MkdirAll(dir, 0o700)
}

// Guard is the right to write a file that must not be locked itself, such as a database that
// locks parts of itself. It locks two other files. One is beside the file: every process that
// sees the folder sees it. The other is in lockFolder and is named by the file's identity: it holds
// when the file is moved, or when it is reached through another folder.
type Guard struct{ beside, byIdentity *Lock }

// LinksError is returned for a file that has several names (hard links).
type LinksError struct{ Links uint64 }

// Error implements error.
func (e *LinksError) Error() string {
	return fmt.Sprintf("the file has %d names (hard links)", e.Links)
}

// TakeGuard locks the name of a file, which need not exist. path has no symbolic links: see
// Resolve. It returns ErrHeld if somebody else has the lock.
func TakeGuard(path string) (*Guard, error) {
	beside, err := TakeLock(path + besideSuffix)
	for n := 1; n < guardTries && errors.Is(err, ErrHeld); n++ { // Guarded may have it for a moment
		time.Sleep(guardPause)
		beside, err = TakeLock(path + besideSuffix)
	}
	if err != nil {
		return nil, err
	}
	return &Guard{beside: beside}, nil
}

// besideSuffix is added to the name of a file to name the lock beside it, and a guard that is held is tried so often.
const (
	besideSuffix = "-lock"
	guardTries   = 3
	guardPause   = 10 * time.Millisecond
)

// Guarded reports whether somebody has the guard of a file. path has no symbolic links: see Resolve.
func Guarded(path string) bool {
	f, err := os.Open(path + besideSuffix)
	if err != nil {
		return false // whoever had it deleted it
	}
	held := errors.Is(tryLock(f), ErrHeld)
	_ = f.Close() // it was only locked
	return held
}

// Extend locks the file that has the name. It returns ErrHeld if somebody else has that lock,
// and a LinksError if the file has several names. If the user has no folder for locks, the
// lock on the name must be enough. It does nothing if g is nil.
func (g *Guard) Extend(path string) error {
	if g == nil {
		return nil
	}
	id, links, err := identity(path)
	if err != nil {
		return err
	}
	if links > 1 {
		return &LinksError{links}
	}
	folder, err := lockFolder()
	if err != nil {
		return nil //nolint:nilerr // see above
	}
	if g.byIdentity, err = TakeLock(filepath.Join(folder, id)); errors.Is(err, ErrHeld) {
		return err
	}
	return nil //nolint:nilerr // see above
}

// Release allows others to lock. It does nothing if g is nil.
func (g *Guard) Release() error {
	if g == nil {
		return nil
	}
	return errors.Join(g.byIdentity.Release(), g.beside.Release())
}
