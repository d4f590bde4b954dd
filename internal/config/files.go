package config

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"os"
	slash "path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"parley/internal/config/document"
	"parley/internal/config/schema"
	"parley/internal/dataset"
	inputs "parley/internal/files"
	"parley/internal/provider"
	"parley/internal/yamltree"
	"parley/journal"
	"parley/world"
)

// maxBeside limits the size of all files that a plan names together. Rows of datasets have their own limits.
const maxBeside = 256 << 20

// files gives access to the files beside a plan file while the plan is read.
type files struct {
	ctx  context.Context //nolint:containedctx // of the call of Load that it is made for
	dir  string
	read *int64 // bytes so far
	*bounds
	foreign bool // overrides are not the user's
}

// besides returns the files that a plan file may name.
func besides(ctx context.Context, plan string, reach Reach) (files, error) {
	b, err := bounded(plan, reach)
	return files{ctx: ctx, dir: filepath.Dir(plan), read: new(int64), bounds: b, foreign: reach.Foreign}, err
}

// path returns the path of a file that a plan names. To open it, call may instead.
func (f files) path(name string) string {
	if name = filepath.FromSlash(name); filepath.IsAbs(name) {
		return filepath.Clean(name) // as it is checked
	}
	return filepath.Join(f.dir, name)
}

// may returns the path of a file if the plan may name it. Every file that is opened is checked here.
func (f files) may(name string) (string, error) {
	path := f.path(name)
	return path, f.check(path)
}

// Match looks into one folder: only the last part of a pattern may have wildcards. Hidden files, such
// as editors leave behind, do not match.
func (f files) Match(pattern string) []string {
	dir, last := slash.Split(pattern)
	all := dir
	if !isPattern(last) {
		all = pattern // it may be within reach although its folder is not
	}
	if _, err := f.may(all); err != nil {
		return nil // load reports the error
	}
	entries, err := os.ReadDir(f.path(dir))
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
func (f files) Text(name string) (string, error) {
	rep, err := f.open(name, document.MaxText)
	if err != nil {
		return "", err
	}
	return rep.Source.Text, nil
}

// Rows reads a file of rows: JSON, JSON lines, YAML or Parquet.
func (f files) Rows(name string) iter.Seq2[json.RawMessage, error] {
	path, err := f.may(name)
	if err != nil {
		return func(yield func(json.RawMessage, error) bool) { yield(nil, err) }
	}
	return dataset.Rows(f.ctx, path)
}

// Folders lists the names of the folders in a folder.
func (f files) Folders(in string) []string {
	at := f.path(in)
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

func (f files) open(name string, limit int) (*document.Report, error) {
	path, err := f.may(name)
	if err != nil {
		return nil, err
	}
	b, err := document.Read(f.ctx, path, "file", int64(limit))
	if err != nil {
		return nil, err
	}
	if *f.read += int64(len(b)); *f.read > maxBeside {
		return nil, document.Errors{{File: path, Problem: "the files that the plan names are larger than " + inputs.Size(maxBeside) + " together"}}
	}
	rep := document.New(&document.Source{Name: path, Beside: true}, b, limit)
	return rep, rep.Err()
}

// YAML decodes a file into v, as strictly as a plan is decoded.
func (f files) YAML(name string, v any) (world.Document, error) {
	rep, err := f.open(name, document.MaxSize)
	if err != nil {
		return nil, err
	}
	root := document.Parse(rep)
	if root == nil {
		return nil, rep.Err()
	}
	if root.Form != yamltree.Mapping {
		rep.Add(root.At, nil, "wants a mapping (key: value), found %s", rep.Found(root))
		return nil, rep.Err()
	}
	shape := schema.ShapeOf(reflect.TypeOf(v), reflect.ValueOf(v), 0)
	d := &decodedFile{Checker: schema.Checker{Report: rep, Root: shape, Meant: map[string]bool{}}, tree: root}
	values, _ := d.Value(root, shape, nil)
	if err := remarshal(values, v); err != nil {
		rep.Add(yamltree.Position{}, nil, "cannot be decoded: %v", err)
	}
	return d, rep.Err()
}

// decodedFile is a file that params name.
type decodedFile struct {
	schema.Checker
	tree *yamltree.Node
}

// Place says where a key is, or in which mapping it would be.
func (d *decodedFile) Place(key string) string {
	e := &document.Error{File: d.Source.Name, Key: yamltree.KeyPath(key).String()}
	where := d.tree.Find(yamltree.KeyPath(key)).Key
	if where.Line > 0 {
		e.File += fmt.Sprintf(":%d:%d", where.Line, where.Column)
	}
	return e.File + ": " + e.Key
}

// Fault reports a problem with a key. It returns nil if an error at that key or below it was
// reported before, or if the key is missing because it was misspelled.
func (d *decodedFile) Fault(key, format string, args ...any) error {
	p := yamltree.KeyPath(key)
	name := p.String()
	if d.Meant[name] && !d.tree.Has(p) {
		return nil
	}
	for _, e := range d.Errs {
		if e.Key == name || strings.HasPrefix(e.Key, name+".") || strings.HasPrefix(e.Key, name+"[") {
			return nil
		}
	}
	n := d.tree.Find(p)
	where := n.At
	if n.Form == yamltree.Mapping || n.Form == yamltree.List || n.Form == yamltree.Nothing {
		where = n.Key
	}
	one := &document.Report{Source: d.Source}
	one.Add(where, p, format, args...)
	d.Errs = append(d.Errs, &document.Error{Key: name}) // so that it is not reported again
	return one.Err()
}

// load fills params with the content of the files that they name, and reports errors in those files.
func (r *resolver) load(beside files) bool {
	if r.Source.Recorded {
		return true
	}
	if !beside.foreign {
		beside.typed(r.tree.Field("params"), beside)
	}
	advice, err := r.plan.Kind.Load(r.plan.Params, beside)
	r.plan.Advice = append(r.plan.Advice, advice...)
	if len(beside.refused) > 0 {
		r.refuse(beside, leaves(err))
		return false
	}
	if err == nil {
		full, err := json.Marshal(r.plan.Params.Pointer())
		if err == nil {
			r.plan.ParamsJSON, err = canonical(full, r.file.Params)
		}
		if err != nil {
			r.paramsProblem(err, yamltree.Path{"params"})
		}
		return err == nil
	}
	for _, one := range leaves(err) {
		if e, ok := one.(*document.Error); ok {
			r.beside = append(r.beside, e)
		} else {
			r.paramsProblem(one, yamltree.Path{"params"})
		}
	}
	return false
}

// joined is an error made of several, as by errors.Join.
type joined interface{ Unwrap() []error }

// leaves lists the errors that err joins.
func leaves(err error) []error {
	if _, ok := err.(*document.Error); ok {
		return []error{err}
	}
	if many, ok := err.(joined); ok {
		var all []error
		for _, one := range many.Unwrap() {
			all = append(all, leaves(one)...)
		}
		return all
	}
	return []error{err}
}

// err returns the errors in the plan and in the files that it names.
func (r *resolver) err() error {
	all, _ := r.Report.Err().(document.Errors)
	if all = append(slices.Clip(all), r.beside...); len(all) == 0 {
		return nil
	}
	return all
}

// seatModels puts the models that the files name into seats that the plan leaves empty, as agents
// with the names of the models.
func (r *resolver) seatModels() {
	if !r.plan.Kind.Casts() || !r.seated {
		return
	}
	var varied []string // seats of the matrix
	if p := r.file.Plan; p != nil && p.Matrix != nil {
		if len(p.Matrix.Seats) == 0 && len(p.Matrix.Agents) > 0 {
			return // the matrix fills every empty seat
		}
		varied = slices.AppendSeq(slices.Clone(p.Matrix.Seats), maps.Keys(p.Matrix.ownSeats()))
	}
	models := r.plan.Kind.Models(r.plan.Params)
	lineup := maps.Clone(r.plan.Lineup)
	if lineup == nil {
		lineup = map[string]string{}
	}
	for _, seat := range r.emptySeats() {
		model := models[seat]
		if model == "" || slices.Contains(varied, seat) {
			continue
		}
		name := cut(notInAgentName.ReplaceAllString(model, "_"), 64)
		lineup[seat] = name
		if _, there := r.plan.Agent(name); !there {
			r.model(model, yamltree.Path{"params"})
			r.plan.Agents = append(r.plan.Agents, world.Agent{Name: name, Model: model})
		}
	}
	r.plan.Lineup = lineup
	slices.SortFunc(r.plan.Agents, func(a, b world.Agent) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(r.plan.Providers, func(a, b provider.Provider) int { return strings.Compare(a.Name, b.Name) })
}

// notInAgentName matches the characters that agentName refuses.
var notInAgentName = regexp.MustCompile(`[^\pL\pN_.@+/-]`)

func cut(s string, limit int) string {
	if len(s) > limit {
		return strings.ToValidUTF8(s[:limit], "")
	}
	return s
}

var (
	_ world.Files        = files{}
	_ world.RowReader    = files{}
	_ world.FolderLister = files{}
	_ journal.Opener     = files{}
	_ world.Document     = (*decodedFile)(nil)
)
