// Package files opens, reads, locks and replaces files.
//
// The files that users name are plans, datasets, scenarios, prices and schemas. Open opens only regular files, so a pipe, a terminal or a device never makes
// the program wait or act. Read reads no more than the caller's limit, and stops when the context
// ends. Every error names the file and says what is wrong with it. YAML is parsed within limits
// too, and never panics.
//
// Folders report whether a file is in one of them, whatever links lead to it. SyncFolder and
// Replace write the program's own files. A Lock, a Guard and OpenLocked prevent two processes from writing one file
// (lock.go).
package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"parley/internal/kit/text"
)

// ErrNotRegular is returned for a folder, a pipe and everything else that is not a regular file.
var ErrNotRegular = errors.New("not a regular file")

// TooLargeError is returned for a file that is larger than the limit.
type TooLargeError struct {
	Path  string
	Limit int64 // bytes
}

// Error implements error.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("%s: is larger than %s", e.Path, Size(e.Limit))
}

// MissingError is returned for a file that does not exist. It is an fs.ErrNotExist.
type MissingError struct{ Path string }

// Error implements error. It suggests a file with a similar name.
func (e *MissingError) Error() string {
	return e.Path + ": there is no such file" + text.SuggestPath(e.Path)
}

// Unwrap returns fs.ErrNotExist.
func (e *MissingError) Unwrap() error { return fs.ErrNotExist }

// Size returns a number of bytes in the largest unit that divides it.
func Size(n int64) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	default:
		return fmt.Sprintf("%d bytes", n)
	}
}

// Open opens a regular file to read it. It follows links.
func Open(path string) (*os.File, error) {
	// Stat comes first, because opening a device may act on it. Open does not wait for
	// the other end of a pipe that has replaced the file meanwhile.
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &MissingError{path}
	}
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		pe.Op = "open"
	}
	if err != nil {
		return nil, err
	}
	if err := checkRegular(path, info); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDONLY|withoutWaiting, 0)
	if err != nil {
		return nil, err
	}
	if info, err = f.Stat(); err == nil {
		err = checkRegular(path, info)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Exhausted returns the error of the system if only a few more files can be opened, and nil otherwise. It is for libraries
// that do not say why they could not open a file: they may have opened and closed others before that one.
func Exhausted() error {
	for range 8 {
		f, err := os.Open(os.DevNull)
		if IsExhausted(err) {
			return errors.Unwrap(err) // without the name of this file
		}
		if err != nil {
			return nil //nolint:nilerr // something else
		}
		defer func() { _ = f.Close() }() // it was not used
	}
	return nil
}

// IsExhausted reports whether err means that too many files are open, in this process or on this machine.
func IsExhausted(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// checkRegular returns an error if path is not a regular file.
func checkRegular(path string, info fs.FileInfo) error {
	var what string
	switch mode := info.Mode(); {
	case mode.IsRegular():
		return nil
	case mode.IsDir():
		what = "a folder"
	case mode&fs.ModeNamedPipe != 0:
		what = "a pipe"
	case mode&fs.ModeSocket != 0:
		what = "a socket"
	case mode&fs.ModeDevice != 0:
		what = "a device"
	default:
		what = "a special file"
	}
	return fmt.Errorf("%s: is %s, %w", path, what, ErrNotRegular)
}

// Read returns the contents of a regular file. If it is larger than limit, Read returns a
// *TooLargeError.
func Read(ctx context.Context, path string, limit int64) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	b, err := ReadAll(ctx, f, path, limit)
	return b, errors.Join(err, f.Close())
}

// ReadAll does the same with a reader. path is for errors.
func ReadAll(ctx context.Context, r io.Reader, path string, limit int64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(ContextReader(ctx, r), limit+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", path, err)
	case int64(len(b)) > limit:
		return nil, &TooLargeError{path, limit}
	}
	return b, nil
}

// ContextReader returns a reader of r that fails with the context's cause when the context ends.
func ContextReader(ctx context.Context, r io.Reader) io.Reader {
	return readerFunc(func(p []byte) (int, error) {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		return r.Read(p)
	})
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

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
	return rename(f.Name(), path)
}

// Folders is a set of folders that files may be in, at any depth.
type Folders struct {
	all []folder
}

// folder is one of them: its name, its name without links, and its identity.
type folder struct {
	named, real string
	info        fs.FileInfo
}

// Add adds a folder, or a single file. It must exist.
func (f *Folders) Add(path string) error {
	named, err := filepath.Abs(path)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	real, err := filepath.EvalSymlinks(named)
	if err != nil {
		return err
	}
	info, err := os.Stat(real)
	if err != nil {
		return err
	}
	f.all = append(f.all, folder{named: named, real: real, info: info})
	return nil
}

// Hold returns path without symbolic links, and whether it is one of the folders or in one. The
// file need not exist, and is not opened. If that cannot be known, such as for a link that leads
// nowhere, no folder holds it.
func (f *Folders) Hold(path string) (real string, held bool) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return path, false
	}
	if !f.volume(abs) {
		return abs, false
	}
	real, known := resolveExisting(abs)
	for _, one := range f.all {
		if known && one.holds(real) {
			return real, true
		}
	}
	return real, false
}

// volume reports whether path is on the volume of a folder. Reading \\host\share would send the
// user's credentials to that host.
func (f *Folders) volume(path string) bool {
	for _, one := range f.all {
		v := filepath.VolumeName(path)
		if strings.EqualFold(v, filepath.VolumeName(one.named)) || strings.EqualFold(v, filepath.VolumeName(one.real)) {
			return true
		}
	}
	return false
}

// resolveExisting follows the symbolic links of path as far as it exists. known is false if something exists
// and its target cannot be read.
func resolveExisting(path string) (real string, known bool) {
	rest := ""
	for {
		real, err := filepath.EvalSymlinks(path)
		if err == nil {
			return filepath.Join(real, rest), true
		}
		if info, err := os.Lstat(path); err == nil {
			if to, err := os.Readlink(path); err == nil && info.Mode()&fs.ModeSymlink != 0 {
				return to, false
			}
			return filepath.Join(path, rest), false
		}
		parent := filepath.Dir(path)
		if parent == path {
			return filepath.Join(path, rest), false
		}
		path, rest = parent, filepath.Join(filepath.Base(path), rest)
	}
}

// holds reports whether real is the folder or in it. Two names may be the same to the file system,
// for example if they differ only in case.
func (d folder) holds(real string) bool {
	if rel, err := filepath.Rel(d.real, real); err == nil && filepath.IsLocal(rel) {
		return true
	}
	for {
		if info, err := os.Stat(real); err == nil && os.SameFile(info, d.info) {
			return true
		}
		parent := filepath.Dir(real)
		if parent == real {
			return false
		}
		real = parent
	}
}
