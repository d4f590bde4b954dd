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
	"parley/internal/kit/files"
)

// WriteTemplates writes the plan, its schema, and the files that the plan names, with their folders. It checks
// all of them before it creates anything. It backs up the files that it overwrites: kept has their names and
// those of the copies.
func WriteTemplates(files []Template, force bool) (kept [][2]string, err error) {
	var changed []string
	for _, f := range files {
		there, err := f.checkBelow()
		if err != nil {
			return nil, err
		}
		if there {
			changed = append(changed, f.Path)
		}
	}
	if len(changed) > 0 && !force {
		return nil, refuseChanged(changed)
	}
	for _, f := range files {
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

// refuseChanged names the existing files that prevent the write.
func refuseChanged(changed []string) error {
	const way = "name another with --out, or overwrite it with --force, which keeps a copy"
	if len(changed) == 1 {
		return exit.Usagef("%s already exists, and is not as init writes it: %s", changed[0], way)
	}
	return exit.Usagef("these files already exist, and are not as init writes them:\n      %s\n%s", strings.Join(changed, "\n      "), way)
}

// backup copies a file to an unused name beside it, and returns that name.
func backup(path string) (string, error) {
	was, err := files.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = was.Close() }() // read only
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

// PathList lists the names of files, one per line.
func PathList(files []Template) string {
	var b strings.Builder
	for _, f := range files {
		b.WriteString("      " + f.Path + "\n")
	}
	return b.String()
}

// Template is a file to write.
type Template struct {
	Path string
	Text []byte
}

// Same reports whether the file exists as it would be written.
func (f Template) Same() bool {
	_, err := os.Stat(f.Path)
	there, checkErr := f.check()
	return err == nil && checkErr == nil && !there
}

// check reports whether a different file exists. It refuses a path where no file can be written.
func (f Template) check() (there bool, err error) {
	info, err := os.Stat(f.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, exit.Usagef("%w", err)
	case !info.Mode().IsRegular():
		return false, exit.Usagef("%s exists and is not a regular file", f.Path)
	}
	if info.Size() != int64(len(f.Text)) {
		return true, nil
	}
	was, err := files.Read(context.Background(), f.Path, info.Size())
	return err != nil || !bytes.Equal(was, f.Text), nil
}

// checkBelow is check for a file whose folders may not exist: none of their paths may be a file.
func (f Template) checkBelow() (there bool, err error) {
	for dir := filepath.Dir(f.Path); ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		switch {
		case (errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)) && dir != filepath.Dir(dir):
			continue
		case err != nil:
			return false, exit.Usagef("%w", err)
		case !info.IsDir():
			return false, exit.Usagef("%s exists and is not a folder; name another path with --out", dir)
		case dir != filepath.Dir(f.Path):
			return false, nil // it will be created
		}
		return f.check()
	}
}

// checkFolder checks that the folder of the file exists.
func (f Template) checkFolder() error {
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

// write writes a new file. It never overwrites a file created since the check. With force it replaces the file
// atomically, so that a full disk does not destroy a plan.
func (f Template) write(force bool) error {
	mode := fs.FileMode(0o644)
	if bytes.HasPrefix(f.Text, []byte("#!")) { // it is a script
		mode = 0o755
	}
	if !force {
		t, err := os.OpenFile(f.Path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		if errors.Is(err, fs.ErrExist) {
			if there, err := f.check(); err != nil || !there {
				return err // the same file already exists
			}
			return refuseChanged([]string{f.Path})
		}
		if err != nil {
			return err
		}
		_, err = t.Write(f.Text)
		return errors.Join(err, t.Close())
	}
	return files.Replace(f.Path, mode, f.Text)
}
