package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"parley/internal/config/document"
	inputs "parley/internal/files"
	"parley/internal/yamltree"
)

// Reach says which files a plan may name, other than those in its own folder.
type Reach struct {
	// Folders are the folders that the user allows.
	Folders []string
	// Foreign means that somebody else wrote the sets. Default: the user typed them, and the files
	// that they name need no permission.
	Foreign bool
}

// bounds are the folders that may hold the files of a plan, while the plan is read.
type bounds struct {
	plan    string
	own     inputs.Folders // the plan's folder
	allowed inputs.Folders // what the user allows
	refused []refusal
	outside []string // allowed files outside the plan's folder, with links resolved
}

// refusal is a file that a plan must not read or write.
type refusal struct{ path, problem string }

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

// typed allows the files that the user named in overrides: the texts at and under n. A name in the
// plan's folder is checked as usual: it may be a link that came with the plan.
func (b *bounds) typed(n *yamltree.Node, beside files) {
	if n == nil {
		return
	}
	for _, f := range n.Fields {
		b.typed(f.Value, beside)
	}
	for _, item := range n.Items {
		b.typed(item, beside)
	}
	if n.Form != yamltree.Text || n.At.Set == "" || n.Text == "" {
		return
	}
	name := beside.path(n.Text)
	if isPattern(filepath.Base(name)) {
		name = filepath.Dir(name)
	}
	if rel, err := filepath.Rel(beside.dir, name); err == nil && filepath.IsLocal(rel) {
		return
	}
	_ = b.allowed.Add(name) // if it exists
}

// check returns an error unless the file at path may be read and written. It does not open the file.
func (b *bounds) check(path string) error {
	real, held := b.own.Hold(path)
	if held {
		return nil
	}
	if real, held := b.allowed.Hold(path); held {
		if !slices.Contains(b.outside, real) {
			b.outside = append(b.outside, real)
		}
		return nil
	}
	allow := filepath.Dir(real)
	if isDir(real) {
		allow = real
	}
	r := refusal{path: path, problem: fmt.Sprintf("%s leads to %s, outside the folder of %s: move it there, or allow its folder with --allow-files %s",
		path, real, b.plan, allow)}
	if !slices.Contains(b.refused, r) {
		b.refused = append(b.refused, r)
	}
	return errors.New(r.problem)
}

// holds is check for files whose refusal is not an error.
func (b *bounds) holds(path string) bool {
	_, own := b.own.Hold(path)
	_, allowed := b.allowed.Hold(path)
	return own || allowed
}

// isPattern reports whether the last part of a name may match several files.
func isPattern(last string) bool { return strings.ContainsAny(last, `*?[`) }

// bound checks the files that are named outside params.
func (r *resolver) bound(beside files) {
	for _, key := range []string{"prices", "cache", "out"} {
		n := r.tree.Field(key)
		if n == nil || n.Form != yamltree.Text || n.Text == "" || key == "cache" && n.Text == "off" || n.At.Set != "" && !beside.foreign {
			continue
		}
		if err := beside.bounds.check(beside.path(n.Text)); err != nil {
			r.complain(yamltree.Path{key}, "%v", err)
		}
	}
	beside.bounds.refused = nil // they have been reported
}

// refuse reports the files that params must not name, and not the errors that follow from that. A
// refused file that another file names is reported at its position in that file.
func (r *resolver) refuse(beside files, errs []error) {
	for _, one := range beside.refused {
		said := false
		for _, err := range errs {
			e, ok := err.(*document.Error)
			if ok && e.Line > 0 && strings.Contains(e.Problem, one.problem) {
				r.beside, said = append(r.beside, e), true
			}
		}
		if !said {
			p, _ := naming(r.tree.Field("params"), beside, one.path, yamltree.Path{"params"})
			if p == nil {
				p = yamltree.Path{"params"}
			}
			r.complain(p, "%s", one.problem)
		}
	}
}

// naming finds the key, at or under n, whose text names the file or the innermost folder around it.
// It also returns the length of that name.
func naming(n *yamltree.Node, beside files, file string, at yamltree.Path) (found yamltree.Path, length int) {
	if n == nil {
		return nil, 0
	}
	if n.Form == yamltree.Text && n.Text != "" {
		name := beside.path(n.Text)
		if isPattern(filepath.Base(name)) {
			name = filepath.Dir(name)
		}
		if rel, err := filepath.Rel(name, file); err == nil && filepath.IsLocal(rel) {
			return at, len(name)
		}
		return nil, 0
	}
	try := func(inner *yamltree.Node, at yamltree.Path) {
		if p, long := naming(inner, beside, file, at); p != nil && long > length {
			found, length = p, long
		}
	}
	for _, f := range n.Fields {
		try(f.Value, at.To(f.Name))
	}
	for i, item := range n.Items {
		try(item, at.To(yamltree.Index(i)))
	}
	return found, length
}

// Check returns an error unless a file may be opened on behalf of another, such as a plan or a run
// file: it must be in the folder of that one, or within reach.
func (r Reach) Check(of, file string) error {
	b, err := bounded(of, r)
	if err != nil {
		return err
	}
	return b.check(file)
}

// isDir reports whether path is a folder. It does not look at paths that may be on another machine.
func isDir(path string) bool {
	if strings.HasPrefix(filepath.VolumeName(path), `\\`) {
		return false
	}
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
