// Package files opens and reads the files that users name: plans, datasets, scenarios,
// prices, schemas.
//
// What it promises: only regular files are opened, so that a pipe, a terminal or a device
// never makes the program wait or act; nothing is read beyond the bound that the caller
// gives; reading ends when the context does. Every error names the file, and says what it
// is or which bound it is over. YAML is parsed within bounds too, and never panics.
//
// Folders say whether a file lies in one of them, whatever links lead to it.
//
// It is not for the program's own files: run files and caches.
package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// ErrNotRegular is what something is that is no regular file, such as a folder or a pipe.
var ErrNotRegular = errors.New("not a regular file")

// TooLargeError says that a file is over a bound.
type TooLargeError struct {
	Path string
	Most int64 // bytes
}

// Error implements error.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("%s: is larger than %s", e.Path, Size(e.Most))
}

// Size writes a number of bytes in the largest unit that divides it.
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

// Open opens a regular file for reading. Links are followed.
func Open(path string) (*os.File, error) {
	// Stat comes first since merely opening a device may act on it. Open does not wait for
	// the other end of a pipe, in case one took the file's place meanwhile.
	info, err := os.Stat(path)
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		pe.Op = "open" // which is what was wanted
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

// regular returns an error that says what path is, if it is no regular file.
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

// Read returns the whole of a regular file of at most so many bytes. A larger one is a
// TooLargeError.
func Read(ctx context.Context, path string, most int64) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	b, err := ReadAll(ctx, f, path, most)
	return b, errors.Join(err, f.Close())
}

// ReadAll is Read from a reader; path is for errors.
func ReadAll(ctx context.Context, r io.Reader, path string, most int64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(Reader(ctx, r), most+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", path, err)
	case int64(len(b)) > most:
		return nil, &TooLargeError{path, most}
	}
	return b, nil
}

// Reader returns a reader of r that fails with the cause of the context when that has
// ended.
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
