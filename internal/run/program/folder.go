package program

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"parley/world"
	"parley/world/part"
)

// The limits of what is read of a folder that a program leaves.
const (
	maxFiles  = 20_000 // with folders
	maxDepth  = 64
	maxListed = 200     // changed files
	maxHashed = 1 << 30 // bytes of files whose content is compared: a file may be large and take no space
)

// write writes files into a folder. Those that are text are changed by edit first, if it is set.
func write(dir string, all []world.File, edit func(string) string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, f := range all {
		if !part.LocalPath(f.Path) {
			return fmt.Errorf("the file %q leads out of its folder", f.Path)
		}
		if err := root.MkdirAll(path.Dir(f.Path), 0o755); err != nil {
			return err
		}
		mode, data := fs.FileMode(0o644), f.Data
		if f.Exec {
			mode = 0o755
		}
		if edit != nil && utf8.Valid(data) {
			data = []byte(edit(string(data)))
		}
		if err := root.WriteFile(f.Path, data, mode); err != nil {
			return err
		}
	}
	return nil
}

// entry is a file in a folder, as it is: links are not followed.
type entry struct {
	mode fs.FileMode
	size int64
	sum  [32]byte // of a regular file
	link string
}

// inspect lists what is in a folder, by path, without its folders. What cannot be opened has no sum.
func inspect(root *os.Root) (map[string]entry, error) {
	all, seen, hashed := map[string]entry{}, 0, int64(0)
	var walk func(dir string, depth int) error
	walk = func(dir string, depth int) error {
		f, err := root.Open(dir)
		if err != nil {
			all[dir] = entry{mode: fs.ModeIrregular}
			return nil //nolint:nilerr // the program may have closed it: it is listed as left out
		}
		defer f.Close()
		for {
			batch, err := f.ReadDir(1000)
			for _, e := range batch {
				name := path.Join(dir, e.Name())
				info, err := root.Lstat(name)
				if seen++; seen > maxFiles {
					return fmt.Errorf("there are more than %d files and folders", maxFiles)
				}
				switch {
				case err != nil:
					continue
				case info.IsDir() && depth >= maxDepth:
					return fmt.Errorf("its folders are nested deeper than %d", maxDepth)
				case info.IsDir():
					if err := walk(name, depth+1); err != nil {
						return err
					}
					continue
				}
				hash := info.Mode().IsRegular() && info.Size() <= maxHashed-hashed
				if hash {
					hashed += info.Size()
				}
				all[name] = look(root, name, info, hash)
			}
			if err != nil {
				return nil //nolint:nilerr // it is the end, or cannot be read further
			}
		}
	}
	return all, walk(".", 0)
}

func look(root *os.Root, name string, info fs.FileInfo, hash bool) entry {
	e := entry{mode: info.Mode(), size: info.Size()}
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		e.link, _ = root.Readlink(name)
	case hash:
		f, err := root.Open(name)
		if err != nil {
			return e
		}
		defer f.Close()
		h := sha256.New()
		_, _ = io.Copy(h, io.LimitReader(f, info.Size()))
		h.Sum(e.sum[:0])
	}
	return e
}

// stays reports whether a link within a folder leads to a place in the same folder. A link may go up only at its beginning: further on, what
// it goes up from may be another link.
func stays(name, link string) bool {
	link = filepath.ToSlash(link)
	to := path.Join(path.Dir(name), link)
	return link == path.Clean(link) && !path.IsAbs(link) && filepath.VolumeName(link) == "" && to != ".." && !strings.HasPrefix(to, "../")
}

// kept reports whether a file belongs to the result: it is a regular file, or a link within the folder.
func (e entry) kept(name string) bool {
	return e.mode.IsRegular() || e.mode&fs.ModeSymlink != 0 && stays(name, e.link)
}

// changes lists how a folder differs from what it was, with the beginnings of texts: limit bytes of all of them together.
func changes(root *os.Root, before, after map[string]entry, limit int) (out []world.Change, more int) {
	var names []string
	for name := range after {
		names = append(names, name)
	}
	for name := range before {
		if _, there := after[name]; !there {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		was, old := before[name]
		is, there := after[name]
		c := world.Change{Path: clean(name), Size: is.size}
		switch {
		case !there:
			c.What = "removed"
		case !is.kept(name):
			c.What, c.Size = "left out", 0
		case !old:
			c.What = "added"
		case is == was:
			continue
		default:
			c.What = "changed"
		}
		if len(out) == maxListed {
			more++
			continue
		}
		if there && is.mode.IsRegular() && limit > 0 {
			c.Text = beginning(root, name, min(limit, 16<<10))
			limit -= len(c.Text)
		}
		out = append(out, c)
	}
	return out, more
}

// beginning returns the first bytes of a file, if they are text.
func beginning(root *os.Root, name string, limit int) string {
	f, err := root.Open(name)
	if err != nil {
		return ""
	}
	defer f.Close()
	b, _ := io.ReadAll(io.LimitReader(f, int64(limit)))
	for cut := 0; cut < utf8.UTFMax && !utf8.Valid(b) && len(b) > 0; cut++ { // the limit may be within a letter
		b = b[:len(b)-1]
	}
	if !utf8.Valid(b) || slices.Contains(b, 0) {
		return ""
	}
	return string(b)
}

// clean makes a name that may hold anything valid text.
func clean(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// errTooLarge means that a result is larger than it may be.
var errTooLarge = errors.New("the result is too large")

// copyResult copies the files of a result to an empty folder: regular files and links that stay within it, and nothing else.
func copyResult(from *os.Root, all map[string]entry, to string, limit int64) error {
	var size int64
	for name, e := range all {
		if e.mode.IsRegular() {
			size += e.size
		}
		if size > limit || size < 0 {
			return fmt.Errorf("%w: its files have more than %d bytes; %s has %d", errTooLarge, limit, clean(name), e.size)
		}
	}
	root, err := os.OpenRoot(to)
	if err != nil {
		return err
	}
	defer root.Close()
	for name, e := range all {
		if !e.kept(name) {
			continue
		}
		if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
			return err
		}
		if e.mode&fs.ModeSymlink != 0 {
			if err := root.Symlink(e.link, name); err != nil {
				return err
			}
			continue
		}
		if err := copyFile(from, root, name, e); err != nil && !errors.Is(err, fs.ErrPermission) { // the program may have closed a file of its own
			return err
		}
	}
	return nil
}

func copyFile(from, to *os.Root, name string, e entry) (err error) {
	in, err := from.Open(name)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := to.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600|e.mode.Perm()&0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, io.LimitReader(in, e.size))
	return errors.Join(err, out.Close())
}

// restore makes a folder one again that a program may have closed, removed, or replaced by a link to another.
func restore(dir string) error {
	info, err := os.Lstat(dir)
	if err == nil && info.IsDir() {
		return os.Chmod(dir, 0o700)
	}
	if err == nil {
		err = os.Remove(dir)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Mkdir(dir, 0o700)
}

// remove removes a folder, whatever a program did to it.
func remove(dir string) error {
	err := os.RemoveAll(dir)
	if err == nil {
		return nil
	}
	_ = filepath.WalkDir(dir, func(name string, e fs.DirEntry, _ error) error { // it reads a folder after this call
		if e != nil && e.IsDir() {
			_ = os.Chmod(name, 0o700) //nolint:gosec // to remove it
		}
		return nil
	})
	return os.RemoveAll(dir)
}
