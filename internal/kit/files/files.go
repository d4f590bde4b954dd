// Package files opens and reads the files that users name: plans, datasets, scenarios, prices,
// schemas.
//
// What it promises: it opens only regular files, so a pipe, a terminal or a device never makes
// the program wait or act. It reads no more than the caller's limit, and stops when the context
// ends. Every error names the file and says what is wrong with it. YAML is parsed within limits
// too, and never panics.
//
// Folders report whether a file is in one of them, whatever links lead to it. SyncFolder and
// Replace write the program's own files.
package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

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
	if err := regular(path, info); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDONLY|withoutWaiting, 0)
	if err != nil {
		return nil, err
	}
	if info, err = f.Stat(); err == nil {
		err = regular(path, info)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// regular returns an error if path is not a regular file.
func regular(path string, info fs.FileInfo) error {
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
	b, err := io.ReadAll(io.LimitReader(Reader(ctx, r), limit+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", path, err)
	case int64(len(b)) > limit:
		return nil, &TooLargeError{path, limit}
	}
	return b, nil
}

// Reader returns a reader of r that fails with the context's cause when the context ends.
func Reader(ctx context.Context, r io.Reader) io.Reader {
	return readerFunc(func(p []byte) (int, error) {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		return r.Read(p)
	})
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
