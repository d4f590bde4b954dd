package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// TempPrefix begins the names of temporary files. A program that is killed leaves them behind.
const TempPrefix = ".parley-"

// Replace writes a file of the program's own. It writes a temporary file beside it, syncs it and
// renames it, so that a reader or a power failure finds either the old or the new contents.
func Replace(path string, perm fs.FileMode, text []byte) error {
	if err := replace(path, perm, text, (*os.File).Sync); err != nil {
		return err
	}
	return SyncFolder(filepath.Dir(path))
}

// Publish is Replace for a file that only running programs read: it does not wait for the disk, so the file may be
// lost or damaged by a power failure.
func Publish(path string, perm fs.FileMode, text []byte) error {
	return replace(path, perm, text, func(*os.File) error { return nil })
}

func replace(path string, perm fs.FileMode, text []byte, sync func(*os.File) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), TempPrefix+"*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	_, err = f.Write(text)
	if err := errors.Join(err, f.Chmod(perm), sync(f), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
