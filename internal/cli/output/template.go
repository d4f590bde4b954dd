package output

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"parley/internal/cli/exit"
	"parley/internal/files"
)

// WriteTemplates writes the plan, its schema, and what the plan names, in folders of its own.
// All of them are looked at before anything is made. What is written over is kept: kept has
// its name and that of its copy.
func WriteTemplates(files []Template, force bool) (kept [][2]string, err error) {
	var changed []string
	for i, f := range files {
		check := f.check
		if i > 1 {
			check = f.checkBelow
		}
		there, err := check()
		if err != nil {
			return nil, err
		}
		if there {
			changed = append(changed, f.Path)
		}
	}
	if len(changed) > 0 && !force {
		return nil, wontWrite(changed)
	}
	for _, f := range files[2:] {
		if err := os.MkdirAll(filepath.Dir(f.Path), 0o750); err != nil {
			return nil, exit.Usagef("%w", err)
		}
	}
	for _, f := range files {
		if slices.Contains(changed, f.Path) {
			name, err := backup(f.Path)
			if err != nil {
				return kept, fmt.Errorf("init: %w", err)
			}
			kept = append(kept, [2]string{f.Path, name})
		}
		if err := f.write(force); err != nil {
			return kept, fmt.Errorf("init: %w", err)
		}
	}
	return kept, nil
}

// wontWrite names the files that stand in the way.
func wontWrite(changed []string) error {
	const way = "name another with --out, or write over it with --force, which keeps a copy"
	if len(changed) == 1 {
		return exit.Usagef("%s is there already, and is not as init writes it: %s", changed[0], way)
	}
	return exit.Usagef("these are there already, and are not as init writes them:\n      %s\n%s", strings.Join(changed, "\n      "), way)
}

// backup copies a file beside itself, over nothing that is there, and returns the name.
func backup(path string) (string, error) {
	was, err := files.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = was.Close() }() // it was only read
	name := path + ".bak"
	for n := 2; ; n++ {
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if errors.Is(err, fs.ErrExist) {
			name = fmt.Sprintf("%s.bak%d", path, n)
			continue
		}
		if err != nil {
			return "", err
		}
		_, err = io.Copy(f, was)
		return name, errors.Join(err, f.Sync(), f.Close())
	}
}

// PathList names files, one a line.
func PathList(files []Template) string {
	var b strings.Builder
	for _, f := range files {
		b.WriteString("      " + f.Path + "\n")
	}
	return b.String()
}

// Template is a file to be written.
type Template struct {
	Path string
	Text []byte
}

// check says whether something else is there, and refuses where no file can be.
func (f Template) check() (there bool, err error) {
	info, err := os.Stat(f.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, f.folder()
	case err != nil:
		return false, exit.Usagef("%w", err)
	case !info.Mode().IsRegular():
		return false, exit.Usagef("%s is there and is no plain file", f.Path)
	}
	if info.Size() != int64(len(f.Text)) {
		return true, nil
	}
	was, err := files.Read(context.Background(), f.Path, info.Size())
	return err != nil || !bytes.Equal(was, f.Text), nil
}

// checkBelow is check for a file whose folders may have to be made: what stands in their
// place must not be a file.
func (f Template) checkBelow() (there bool, err error) {
	for dir := filepath.Dir(f.Path); ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		switch {
		case (errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)) && dir != filepath.Dir(dir):
			continue
		case err != nil:
			return false, exit.Usagef("%w", err)
		case !info.IsDir():
			return false, exit.Usagef("%s is there and is no folder: name another place with --out", dir)
		case dir != filepath.Dir(f.Path):
			return false, nil // it is made
		}
		return f.check()
	}
}

// folder makes sure that there is one to write to.
func (f Template) folder() error {
	dir := filepath.Dir(f.Path)
	switch info, err := os.Stat(dir); {
	case errors.Is(err, fs.ErrNotExist):
		return exit.Usagef("%s: the folder %s does not exist: make it first, or name another file", f.Path, dir)
	case err != nil:
		return exit.Usagef("%w", err)
	case !info.IsDir():
		return exit.Usagef("%s: %s is a file, not a folder: name another file", f.Path, dir)
	default:
		return nil
	}
}

// write writes a new file, never over one that came up since it was looked for; with
// force it puts the whole file in place in one step, so that a full disk costs nobody a
// plan.
func (f Template) write(force bool) error {
	if !force {
		t, err := os.OpenFile(f.Path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if errors.Is(err, fs.ErrExist) {
			if there, err := f.check(); err != nil || !there {
				return err // the same is there already
			}
			return wontWrite([]string{f.Path})
		}
		if err != nil {
			return err
		}
		_, err = t.Write(f.Text)
		return errors.Join(err, t.Close())
	}
	return files.Replace(f.Path, 0o644, f.Text)
}
