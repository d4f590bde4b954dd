package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// lock is the right to write a run file. The system takes it back when the process ends,
// however it ends.
type lock struct {
	file *os.File
	path string
}

// takeLock takes the lock of the run file at path. It is on a file beside it, since SQLite
// locks the run file itself in ways of its own.
func takeLock(path string) (*lock, error) {
	at := path + "-lock"
	for {
		f, err := os.OpenFile(at, os.O_RDWR|os.O_CREATE, 0o644)
		if err != nil {
			return nil, fmt.Errorf("sqlite: %s: the folder cannot be written (allow it, or name a file in another folder): %w", path, err)
		}
		switch held, err := tryLock(f); {
		case err != nil:
			return nil, errors.Join(fmt.Errorf("sqlite: %s: lock: %w", path, err), f.Close())
		case held:
			return nil, errors.Join(fmt.Errorf("sqlite: %s: %w: wait until it is done or stop it; reading the file is possible meanwhile", path, ErrPlaying), f.Close())
		case sameFile(f, at):
			return &lock{file: f, path: at}, nil
		}
		// Who had it before deleted it between our opening and our locking: the next one to
		// come would lock another file than we did.
		_ = f.Close()
	}
}

func sameFile(f *os.File, path string) bool {
	a, err := f.Stat()
	if err != nil {
		return false
	}
	b, err := os.Stat(path)
	return err == nil && os.SameFile(a, b)
}

// release lets others write. The file is deleted first where the system allows it, while
// nobody else can have it.
func (l *lock) release() error {
	if l == nil {
		return nil
	}
	removed := os.Remove(l.path)
	err := l.file.Close()
	if removed != nil && !errors.Is(removed, fs.ErrNotExist) {
		_ = os.Remove(l.path) // a file in use cannot be deleted everywhere; left behind, it does no harm
	}
	return err
}
