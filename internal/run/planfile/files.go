package planfile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	slash "path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"parley/internal/kit/files"
	"parley/internal/kit/yamltree"
	"parley/internal/run/dataset"
	"parley/world"
	"parley/world/part"
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

	reach  Reach
	kinds  []world.Kind // of the plan that a plan may name
	inner  bool         // the plan is one that another plan names
	nested *Plan        // that Plan has read
}

// NewFiles returns the files that a plan file may name.
func NewFiles(ctx context.Context, plan string, reach Reach) (*Files, error) {
	b, err := newBounds(plan, reach)
	return &Files{ctx: ctx, dir: filepath.Dir(plan), read: new(int64), bounds: b, Foreign: reach.Foreign, reach: reach}, err
}

// Path returns the path of a file that a plan names. To open it, call allowedPath instead.
func (f *Files) Path(name string) string {
	if name = filepath.FromSlash(name); filepath.IsAbs(name) {
		return filepath.Clean(name) // as it is checked
	}
	return filepath.Join(f.dir, name)
}

// allowedPath returns the path of a file if the plan may name it. Every file that is opened is checked here.
func (f *Files) allowedPath(name string) (string, error) {
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
	if _, err := f.allowedPath(all); err != nil {
		return nil // loadFiles reports the error
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
	path, err := f.allowedPath(name)
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

// The limits of a folder that a plan names.
const (
	maxFolderFiles = 10_000
	maxFolderDepth = 32
)

// Folder reads the files of a folder. A link is followed if the plan may name what it leads to.
func (f *Files) Folder(name string) ([]world.File, error) {
	var all []world.File
	var read func(in string, depth int) error
	read = func(in string, depth int) error {
		path, err := f.allowedPath(slash.Join(name, in))
		if err != nil {
			return err
		}
		entries, err := os.ReadDir(path)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if err := f.ctx.Err(); err != nil {
				return err
			}
			own := slash.Join(in, e.Name())
			path, err := f.allowedPath(slash.Join(name, own))
			if err != nil {
				return err
			}
			info, err := os.Stat(path)
			switch {
			case err != nil:
				return err
			case info.IsDir() && depth == maxFolderDepth:
				return fmt.Errorf("%s: folders are nested deeper than %d", path, maxFolderDepth)
			case info.IsDir():
				if err := read(own, depth+1); err != nil {
					return err
				}
				continue
			case !part.LocalPath(own):
				return fmt.Errorf("%s: its name cannot be used on every system: rename it", path)
			case len(all) == maxFolderFiles:
				return fmt.Errorf("%s has more than %d files", f.Path(name), maxFolderFiles)
			}
			b, err := readFile(f.ctx, path, "file", maxBeside)
			if err != nil {
				return err
			}
			if *f.read += int64(len(b)); *f.read > maxBeside {
				return Errors{{File: path, Problem: "the files that the plan names are larger than " + files.Size(maxBeside) + " together"}}
			}
			all = append(all, world.File{Path: own, Data: b, Exec: info.Mode()&0o111 != 0})
		}
		return nil
	}
	return all, read("", 0)
}

// TOML decodes a file, and lists the keys that v has no field for.
func (f *Files) TOML(name string, v any) (unknown []string, err error) {
	rep, err := f.open(name, MaxSize)
	if err != nil {
		return nil, err
	}
	meta, err := toml.Decode(rep.Source.Text, v)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", rep.Source.Name, err)
	}
	for _, key := range meta.Undecoded() {
		unknown = append(unknown, key.String())
	}
	return unknown, nil
}

func (f *Files) open(name string, limit int) (*report, error) {
	path, err := f.allowedPath(name)
	if err != nil {
		return nil, err
	}
	b, err := readFile(f.ctx, path, "file", int64(limit))
	if err != nil {
		return nil, err
	}
	if *f.read += int64(len(b)); *f.read > maxBeside {
		return nil, Errors{{File: path, Problem: "the files that the plan names are larger than " + files.Size(maxBeside) + " together"}}
	}
	rep := newReport(&source{Name: path, Beside: true}, b, limit)
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
	_ world.Files       = (*Files)(nil)
	_ part.RowReader    = (*Files)(nil)
	_ part.FolderLister = (*Files)(nil)
	_ part.FolderReader = (*Files)(nil)
	_ part.TOMLReader   = (*Files)(nil)
	_ part.PlanReader   = (*Files)(nil)
	_ world.Document    = (*decodedFile)(nil)
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
	b, err := newBounds(of, r)
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

// newBounds returns the bounds of a plan file. A plan that is not a file has no folder, and names no files.
func newBounds(plan string, reach Reach) (*bounds, error) {
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

// holds is Check for files whose refusal is not an error.
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

// YAML decodes a file into v, as strictly as a plan is decoded.
func (f *Files) YAML(name string, v any) (world.Document, error) {
	rep, err := f.open(name, MaxSize)
	if err != nil {
		return nil, err
	}
	root := parseYAML(rep)
	if root == nil {
		return nil, rep.Err()
	}
	if root.Form != yamltree.Mapping {
		rep.Add(root.At, nil, "wants a mapping (key: value), found %s", rep.Found(root))
		return nil, rep.Err()
	}
	shape := shapeOf(reflect.TypeOf(v), reflect.ValueOf(v), 0)
	d := &decodedFile{checker{report: rep, Tree: root, Root: shape, Meant: map[string]bool{}}}
	values, _ := d.Value(root, shape, nil)
	if err := remarshal(values, v); err != nil {
		rep.Add(yamltree.Position{}, nil, "cannot be decoded: %v", err)
	}
	return d, rep.Err()
}

// decodedFile is a file that params name.
type decodedFile struct {
	checker
}

// Place says where a key is, or in which mapping it would be.
func (d *decodedFile) Place(key string) string {
	e := &Error{File: d.Source.Name, Key: yamltree.KeyPath(key).String()}
	where := d.Tree.Find(yamltree.KeyPath(key)).Key
	if where.Line > 0 {
		e.File += fmt.Sprintf(":%d:%d", where.Line, where.Column)
	}
	return e.File + ": " + e.Key
}

// Fault reports a problem with a key. It returns nil if an error at that key or below it was
// reported before, or if the key is missing because it was misspelled.
func (d *decodedFile) Fault(key, format string, args ...any) error {
	p := yamltree.KeyPath(key)
	if d.Reported(p) {
		return nil
	}
	one := &report{Source: d.Source}
	one.Add(d.Position(p), p, format, args...)
	d.Errs = append(d.Errs, &Error{Key: p.String()}) // so that it is not reported again
	return one.Err()
}
