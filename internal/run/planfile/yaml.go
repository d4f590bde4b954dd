package planfile

import (
	"fmt"
	"reflect"

	"parley/internal/kit/yamltree"
	"parley/world"
)

// YAML decodes a file into v, as strictly as a plan is decoded.
func (f *Files) YAML(name string, v any) (world.Document, error) {
	rep, err := f.open(name, MaxSize)
	if err != nil {
		return nil, err
	}
	root := parseDocument(rep)
	if root == nil {
		return nil, rep.Err()
	}
	if root.Form != yamltree.Mapping {
		rep.Add(root.At, nil, "wants a mapping (key: value), found %s", rep.Found(root))
		return nil, rep.Err()
	}
	shape := shapeOf(reflect.TypeOf(v), reflect.ValueOf(v), 0)
	d := &decodedFile{Checker{Report: rep, Tree: root, Root: shape, Meant: map[string]bool{}}}
	values, _ := d.Value(root, shape, nil)
	if err := remarshal(values, v); err != nil {
		rep.Add(yamltree.Position{}, nil, "cannot be decoded: %v", err)
	}
	return d, rep.Err()
}

// decodedFile is a file that params name.
type decodedFile struct {
	Checker
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
	one := &Report{Source: d.Source}
	one.Add(d.Position(p), p, format, args...)
	d.Errs = append(d.Errs, &Error{Key: p.String()}) // so that it is not reported again
	return one.Err()
}
