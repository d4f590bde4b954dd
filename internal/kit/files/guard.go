package files

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Guard is the right to write a file that must not be locked itself, such as a database that
// locks parts of itself. It locks two other files. One is beside the file: every process that
// sees the folder sees it. The other is in Folder and is named by the file's identity: it holds
// when the file is moved, or when it is reached through another folder.
type Guard struct{ beside, byIdentity *Lock }

// LinksError is returned for a file that has several names (hard links).
type LinksError struct{ Links uint64 }

// Error implements error.
func (e *LinksError) Error() string {
	return fmt.Sprintf("filelock: the file has %d names (hard links)", e.Links)
}

// TakeGuard locks the name of a file, which need not exist. path has no symbolic links: see
// Resolve. It returns ErrHeld if somebody else has the lock.
func TakeGuard(path string) (*Guard, error) {
	beside, err := Take(path + besideSuffix)
	for n := 1; n < guardTries && errors.Is(err, ErrHeld); n++ { // Guarded may have it for a moment
		time.Sleep(guardPause)
		beside, err = Take(path + besideSuffix)
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
	id, links, err := Identity(path)
	if err != nil {
		return err
	}
	if links > 1 {
		return &LinksError{links}
	}
	folder, err := Folder()
	if err != nil {
		return nil //nolint:nilerr // see above
	}
	if g.byIdentity, err = Take(filepath.Join(folder, id)); errors.Is(err, ErrHeld) {
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
