package files

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

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
	real, known := resolve(abs)
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

// resolve follows the symbolic links of path as far as it exists. known is false if something exists
// and its target cannot be read.
func resolve(path string) (real string, known bool) {
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
