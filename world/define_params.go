package world

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strings"
)

var (
	kindName = regexp.MustCompile(`^[a-z][a-z0-9]*([-_][a-z0-9]+)*$`)
	codeName = regexp.MustCompile(`^[^:\x00-\x1f]+:[A-Za-z_][A-Za-z0-9_]*$`) // a file and a class in it: auction.py:Auction
)

// Check checks the name and the version.
func (a About) Check() error {
	switch {
	case !kindName.MatchString(a.Name) && !codeName.MatchString(a.Name):
		return fmt.Errorf("the name %q: want a lower-case letter, then lower-case letters and digits, with single - and _ between them", a.Name)
	case a.Version < 1:
		return fmt.Errorf("version %d: want 1 or more", a.Version)
	}
	return nil
}

// checkParams checks that plan files and run files can hold params: a struct of exported fields, each with its
// own JSON name. Other fields would be lost when the run is resumed.
func checkParams(params reflect.Type) error {
	if readsItself(params) {
		return nil
	}
	if params.Kind() != reflect.Struct {
		return fmt.Errorf("its params are %v: want a struct", params)
	}
	return checkFields(params, "params", map[reflect.Type]bool{})
}

// checkFields checks the fields of a struct and of the structs within it. path names the struct in errors.
func checkFields(t reflect.Type, path string, seen map[reflect.Type]bool) error {
	if seen[t] {
		return nil
	}
	seen[t] = true
	by := map[string]string{} // JSON names to fields
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" || len(f.Index) > 1 && shadowed(t, f) || name == "-" {
			continue
		}
		switch {
		case !f.IsExported():
			return fmt.Errorf("%s: the field %s is not exported: a run file would not hold it; export it, or keep it elsewhere", path, f.Name)
		case name == "":
			return fmt.Errorf("%s: the field %s has no json tag: add one such as `json:\"%s\"`", path, f.Name, strings.ToLower(f.Name))
		case by[name] != "":
			return fmt.Errorf("%s: the fields %s and %s have the same json tag %q: rename one", path, by[name], f.Name, name)
		}
		by[name] = f.Name
		if inner := elem(f.Type); inner.Kind() == reflect.Struct && !readsItself(inner) {
			if err := checkFields(inner, path+"."+name, seen); err != nil {
				return err
			}
		}
	}
	return nil
}

// shadowed reports whether a field of an embedded struct is hidden, or is within a struct with a JSON name,
// which is checked under that name.
func shadowed(t reflect.Type, f reflect.StructField) bool {
	for i := 1; i < len(f.Index); i++ {
		if name, _, _ := strings.Cut(t.FieldByIndex(f.Index[:i]).Tag.Get("json"), ","); name != "" {
			return true
		}
	}
	seen, ok := t.FieldByName(f.Name)
	return !ok || len(seen.Index) != len(f.Index)
}

// readsItself reports whether a type has its own method to decode JSON.
func readsItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(reflect.TypeFor[json.Unmarshaler]()) || p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

// elem returns the type of the values in lists, maps and pointers.
func elem(t reflect.Type) reflect.Type {
	for {
		switch t.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
			t = t.Elem()
		default:
			return t
		}
	}
}
