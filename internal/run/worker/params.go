// Part params makes the params of worlds in workers from what a worker says about them.

package worker

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"parley/world"
)

// workerParams are the params of a world in a worker. Its fields are known when the worker has described them.
type workerParams struct{ fields any } // a pointer to a struct that package reflect made

var _ world.Dynamic = (*workerParams)(nil)

// Fields returns the pointer to the struct.
func (p *workerParams) Fields() any { return p.fields }

// UnmarshalJSON decodes params over those that are set.
func (p *workerParams) UnmarshalJSON(b []byte) error { return json.Unmarshal(b, p.fields) }

// MarshalJSON encodes them.
func (p *workerParams) MarshalJSON() ([]byte, error) { return json.Marshal(p.fields) }

// paramsField describes a param.
type paramsField struct {
	Name    string          `json:"name"`
	Type    kindOfValue     `json:"type"`
	Default json.RawMessage `json:"default"` // nil: the plan must set it
	Doc     string          `json:"doc"`
}

// kindOfValue is a type of the protocol: a name, or an object with one field.
type kindOfValue struct {
	name     string
	list     *kindOfValue
	mapOf    *kindOfValue
	optional *kindOfValue
	oneOf    []string
	fields   []paramsField
}

// UnmarshalJSON decodes a type.
func (k *kindOfValue) UnmarshalJSON(b []byte) error {
	if json.Unmarshal(b, &k.name) == nil {
		return nil
	}
	var composed struct {
		List     *kindOfValue  `json:"list"`
		Map      *kindOfValue  `json:"map"`
		Optional *kindOfValue  `json:"optional"`
		OneOf    []string      `json:"one_of"`
		Fields   []paramsField `json:"fields"`
	}
	if err := json.Unmarshal(b, &composed); err != nil {
		return err
	}
	k.list, k.mapOf, k.optional, k.oneOf, k.fields = composed.List, composed.Map, composed.Optional, composed.OneOf, composed.Fields
	return nil
}

// maxNested limits how deep types are nested.
const maxNested = 20

// goType returns the Go type that holds values of a type.
func (k *kindOfValue) goType(depth int) (reflect.Type, error) {
	if depth > maxNested {
		return nil, fmt.Errorf("its type is nested more than %d deep", maxNested)
	}
	switch {
	case k.list != nil:
		elem, err := k.list.goType(depth + 1)
		if err != nil {
			return nil, err
		}
		return reflect.SliceOf(elem), nil
	case k.mapOf != nil:
		elem, err := k.mapOf.goType(depth + 1)
		if err != nil {
			return nil, err
		}
		return reflect.MapOf(reflect.TypeFor[string](), elem), nil
	case k.optional != nil:
		elem, err := k.optional.goType(depth + 1)
		if err != nil {
			return nil, err
		}
		return reflect.PointerTo(elem), nil
	case k.fields != nil:
		return structOf(k.fields, depth+1)
	case k.oneOf != nil:
		return reflect.TypeFor[string](), nil
	}
	switch k.name {
	case "int":
		return reflect.TypeFor[int](), nil
	case "float":
		return reflect.TypeFor[float64](), nil
	case "str":
		return reflect.TypeFor[string](), nil
	case "bool":
		return reflect.TypeFor[bool](), nil
	case "any":
		return reflect.TypeFor[any](), nil
	default:
		return nil, fmt.Errorf("has the unknown type %q", k.name)
	}
}

// structOf returns a struct with these fields.
func structOf(fields []paramsField, depth int) (reflect.Type, error) {
	made := make([]reflect.StructField, 0, len(fields))
	seen := map[string]bool{}
	for i, f := range fields {
		t, err := f.Type.goType(depth)
		if err != nil {
			return nil, fmt.Errorf("param %s %w", f.Name, err)
		}
		if f.Name == "" || strings.ContainsAny(f.Name, ",\"`\\") || seen[f.Name] {
			return nil, fmt.Errorf("param %q: want a name that is not used twice", f.Name)
		}
		seen[f.Name] = true
		name := f.Name
		if f.Default == nil && t.Kind() != reflect.Pointer {
			t, name = reflect.PointerTo(t), name+",omitempty" // nil means that it is not set
		}
		tag := fmt.Sprintf(`json:%q doc:%s`, name, strconv.Quote(f.Doc))
		if one := f.Type.oneOf; one != nil && !slices.ContainsFunc(one, func(s string) bool { return strings.Contains(s, ",") }) {
			tag += fmt.Sprintf(` oneof:%q`, strings.Join(one, ","))
		}
		made = append(made, reflect.StructField{Name: "P" + strconv.Itoa(i), Type: t, Tag: reflect.StructTag(tag)})
	}
	return reflect.StructOf(made), nil
}

// shape is the fields of params.
type shape struct {
	fields []paramsField
	made   reflect.Type
}

// newParams returns the shape of fields.
func newParams(fields []paramsField) (*shape, error) {
	made, err := structOf(fields, 0)
	if err != nil {
		return nil, err
	}
	s := &shape{fields, made}
	_, err = s.defaults()
	return s, err
}

// Defaults returns new params with their defaults.
func (s *shape) Defaults() *workerParams {
	p, err := s.defaults()
	if err != nil {
		panic(err) // they were made once before
	}
	return p
}

func (s *shape) defaults() (*workerParams, error) {
	v := reflect.New(s.made)
	for i, f := range s.fields {
		if f.Default == nil {
			continue
		}
		if err := json.Unmarshal(f.Default, v.Elem().Field(i).Addr().Interface()); err != nil {
			return nil, fmt.Errorf("param %s: its default %s is not of its type: %w", f.Name, f.Default, err)
		}
	}
	return &workerParams{fields: v.Interface()}, nil
}
