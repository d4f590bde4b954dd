// Part reach gives a plan file access to the files that it names: those in its own folder, and those
// that the user allows.
//
// It starts nothing. It opens only files that Check allows.

package planfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"parley/internal/kit/files"
)

// Reach says which files a plan may name, other than those in its own folder.
type Reach struct {
	// Folders are the folders that the user allows.
	Folders []string
	// Foreign means that somebody else wrote the sets. Default: the user typed them, and the files
	// that they name need no permission.
	Foreign bool
}

// Check returns an error unless a file may be opened on behalf of another, such as a plan or a run
// file: it must be in the folder of that one, or within reach.
func (r Reach) Check(of, file string) error {
	b, err := bounded(of, r)
	if err != nil {
		return err
	}
	return b.Check(file)
}

// bounds are the folders that may hold the files of a plan, while the plan is read.
type bounds struct {
	plan    string
	own     files.Folders // the plan's folder
	allowed files.Folders // what the user allows
	Refused []refusal
	Outside []string // allowed files outside the plan's folder, with links resolved
}

// refusal is a file that a plan must not read or write.
type refusal struct{ Path, Problem string }

// bounded returns the bounds of a plan file. A plan that is not a file has no folder, and names no files.
func bounded(plan string, reach Reach) (*bounds, error) {
	b := &bounds{plan: plan}
	_ = b.own.Add(filepath.Dir(plan)) // on an error, no file is in it
	for _, dir := range reach.Folders {
		if err := b.allowed.Add(dir); err != nil {
			return nil, fmt.Errorf("--allow-files %s: name a folder that exists: %w", dir, err)
		}
	}
	return b, nil
}

// Check returns an error unless the file at path may be read and written. It does not open the file.
func (b *bounds) Check(path string) error {
	real, held := b.own.Hold(path)
	if held {
		return nil
	}
	if real, held := b.allowed.Hold(path); held {
		if !slices.Contains(b.Outside, real) {
			b.Outside = append(b.Outside, real)
		}
		return nil
	}
	allow := filepath.Dir(real)
	if isDir(real) {
		allow = real
	}
	r := refusal{Path: path, Problem: fmt.Sprintf("%s leads to %s, outside the folder of %s: move it there, or allow its folder with --allow-files %s",
		path, real, b.plan, allow)}
	if !slices.Contains(b.Refused, r) {
		b.Refused = append(b.Refused, r)
	}
	return errors.New(r.Problem)
}

// holds is Check for files whose Refusal is not an error.
func (b *bounds) holds(path string) bool {
	_, own := b.own.Hold(path)
	_, allowed := b.allowed.Hold(path)
	return own || allowed
}

// isPattern reports whether the last part of a name may match several files.
func isPattern(last string) bool { return strings.ContainsAny(last, `*?[`) }

// isDir reports whether path is a folder. It does not look at paths that may be on another machine.
func isDir(path string) bool {
	if strings.HasPrefix(filepath.VolumeName(path), `\\`) {
		return false
	}
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
