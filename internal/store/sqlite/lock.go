package sqlite

import (
	"errors"
	"fmt"
	"path/filepath"

	"parley/internal/filelock"
)

// lock is the right to write a run file. The file itself is not locked, since SQLite locks it
// in ways of its own. In its place are a file beside it, which everybody sees who sees the
// folder, and one that has the run file's identity for a name: it holds where the run file
// is moved while it is written, or is reached through another folder.
type lock struct{ beside, own *filelock.Lock }

// takeLock takes the lock on the name of the run file. target is path without symbolic links.
func takeLock(path, target string) (*lock, error) {
	beside, err := filelock.Take(target + "-lock")
	switch {
	case errors.Is(err, filelock.ErrHeld):
		return nil, playing(path)
	case err != nil:
		return nil, fmt.Errorf("sqlite: %s: the folder cannot be written (allow it, or name a file in another folder): %w", path, err)
	}
	return &lock{beside: beside}, nil
}

func playing(path string) error {
	return fmt.Errorf("sqlite: %s: %w: wait until it is done or stop it; reading the file is possible meanwhile", path, ErrPlaying)
}

// extend takes the lock on the file that has the name.
func (l *lock) extend(path, target string) error {
	if l == nil {
		return nil
	}
	id, links, err := filelock.Identity(target)
	if err != nil {
		return fmt.Errorf("sqlite: %s: lock: %w", path, err)
	}
	if links > 1 {
		// SQLite's log goes by the name: what was written under one is not seen under another.
		return fmt.Errorf("sqlite: %s has %d names (hard links), and is safe to play only when it has one: delete the others, or copy the file and play the copy", path, links)
	}
	folder, err := filelock.Folder()
	if err != nil {
		return nil //nolint:nilerr // where the user has no folder, the lock on the name must do
	}
	l.own, err = filelock.Take(filepath.Join(folder, id))
	if errors.Is(err, filelock.ErrHeld) {
		return playing(path)
	}
	return nil //nolint:nilerr // as above
}

// release lets others write.
func (l *lock) release() error {
	if l == nil {
		return nil
	}
	return errors.Join(l.own.Release(), l.beside.Release())
}
