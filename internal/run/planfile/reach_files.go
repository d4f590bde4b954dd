package planfile

import (
	"context"
	"encoding/json"
	"iter"
	"os"
	slash "path"
	"path/filepath"
	"strings"

	"parley/internal/kit/files"
	"parley/internal/kit/yamltree"
	"parley/internal/run/dataset"
	"parley/journal"
	"parley/world"
)

// maxBeside limits the size of all files that a plan names together. Rows of datasets have their own limits.
const maxBeside = 256 << 20

// Files gives access to the files beside a plan file while the plan is read.
type Files struct {
	ctx  context.Context //nolint:containedctx // of the call of Load that it is made for
	dir  string
	read *int64 // bytes so far
	*bounds
	Foreign bool // overrides are not the user's
}

// NewFiles returns the files that a plan file may name.
func NewFiles(ctx context.Context, plan string, reach Reach) (*Files, error) {
	b, err := bounded(plan, reach)
	return &Files{ctx: ctx, dir: filepath.Dir(plan), read: new(int64), bounds: b, Foreign: reach.Foreign}, err
}

// Path returns the path of a file that a plan names. To open it, call may instead.
func (f *Files) Path(name string) string {
	if name = filepath.FromSlash(name); filepath.IsAbs(name) {
		return filepath.Clean(name) // as it is checked
	}
	return filepath.Join(f.dir, name)
}

// may returns the path of a file if the plan may name it. Every file that is opened is checked here.
func (f *Files) may(name string) (string, error) {
	path := f.Path(name)
	return path, f.Check(path)
}

// Match looks into one folder: only the last part of a pattern may have wildcards. Hidden files, such
// as editors leave behind, do not match.
func (f *Files) Match(pattern string) []string {
	dir, last := slash.Split(pattern)
	all := dir
	if !isPattern(last) {
		all = pattern // it may be within reach although its folder is not
	}
	if _, err := f.may(all); err != nil {
		return nil // load reports the error
	}
	entries, err := os.ReadDir(f.Path(dir))
	if err != nil {
		return nil // no folder, no files
	}
	var names []string
	for _, e := range entries {
		if ok, err := slash.Match(last, e.Name()); ok && err == nil && !e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
			names = append(names, dir+e.Name())
		}
	}
	return names
}

// Text returns the text of a file. Only the kind knows its format.
func (f *Files) Text(name string) (string, error) {
	rep, err := f.open(name, maxText)
	if err != nil {
		return "", err
	}
	return rep.Source.Text, nil
}

// Rows reads a file of rows: JSON, JSON lines, YAML or Parquet.
func (f *Files) Rows(name string) iter.Seq2[json.RawMessage, error] {
	path, err := f.may(name)
	if err != nil {
		return func(yield func(json.RawMessage, error) bool) { yield(nil, err) }
	}
	return dataset.Rows(f.ctx, path)
}

// Folders lists the names of the folders in a folder.
func (f *Files) Folders(in string) []string {
	at := f.Path(in)
	if !f.holds(at) {
		return nil
	}
	entries, err := os.ReadDir(at)
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		// A link may lead to a folder, and its own entry does not say so.
		if there, err := os.Stat(filepath.Join(at, e.Name())); err == nil && there.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names
}

func (f *Files) open(name string, limit int) (*Report, error) {
	path, err := f.may(name)
	if err != nil {
		return nil, err
	}
	b, err := readDocument(f.ctx, path, "file", int64(limit))
	if err != nil {
		return nil, err
	}
	if *f.read += int64(len(b)); *f.read > maxBeside {
		return nil, Errors{{File: path, Problem: "the files that the plan names are larger than " + files.Size(maxBeside) + " together"}}
	}
	rep := newDocument(&source{Name: path, Beside: true}, b, limit)
	return rep, rep.Err()
}

// AllowTyped allows the files that the user named in overrides: the texts at and under n. A name in the
// plan's folder is checked as usual: it may be a link that came with the plan.
func (f *Files) AllowTyped(n *yamltree.Node) {
	if n == nil {
		return
	}
	for _, field := range n.Fields {
		f.AllowTyped(field.Value)
	}
	for _, item := range n.Items {
		f.AllowTyped(item)
	}
	if n.Form != yamltree.Text || n.At.Set == "" || n.Text == "" {
		return
	}
	name := f.Path(n.Text)
	if isPattern(filepath.Base(name)) {
		name = filepath.Dir(name)
	}
	if rel, err := filepath.Rel(f.dir, name); err == nil && filepath.IsLocal(rel) {
		return
	}
	_ = f.allowed.Add(name) // if it exists
}

// Naming finds the key, at or under n, whose text names the file or the innermost folder around it.
// It also returns the length of that name.
func (f *Files) Naming(n *yamltree.Node, file string, at yamltree.Path) (found yamltree.Path, length int) {
	if n == nil {
		return nil, 0
	}
	if n.Form == yamltree.Text && n.Text != "" {
		name := f.Path(n.Text)
		if isPattern(filepath.Base(name)) {
			name = filepath.Dir(name)
		}
		if rel, err := filepath.Rel(name, file); err == nil && filepath.IsLocal(rel) {
			return at, len(name)
		}
		return nil, 0
	}
	try := func(inner *yamltree.Node, at yamltree.Path) {
		if p, long := f.Naming(inner, file, at); p != nil && long > length {
			found, length = p, long
		}
	}
	for _, field := range n.Fields {
		try(field.Value, at.To(field.Name))
	}
	for i, item := range n.Items {
		try(item, at.To(yamltree.Index(i)))
	}
	return found, length
}

var (
	_ world.Files        = (*Files)(nil)
	_ world.RowReader    = (*Files)(nil)
	_ world.FolderLister = (*Files)(nil)
	_ journal.Opener     = (*Files)(nil)
	_ world.Document     = (*decodedFile)(nil)
)
