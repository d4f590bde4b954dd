package config

import (
	"encoding"
	"encoding/json"
	"math"
	"reflect"
	"strings"

	"parley/internal/yamltree"
)

// shapeOf returns the shape of values of a Go type. preset holds the defaults of a struct, if there are any.
func shapeOf(t reflect.Type, preset reflect.Value, depth int) *shape {
	if reads := reflect.PointerTo(t); depth > yamltree.MaxDepth || reads.Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return whatever() // its own method reports errors when it is read
	} else if reads.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		return words()
	}
	switch t.Kind() {
	case reflect.Pointer:
		if preset.IsValid() {
			preset = preset.Elem()
		}
		return shapeOf(t.Elem(), preset, depth+1)
	case reflect.Struct:
		return structShape(t, preset, depth)
	case reflect.Slice, reflect.Array:
		return listOf(shapeOf(t.Elem(), reflect.Value{}, depth+1))
	case reflect.Map:
		return dict("NAME", shapeOf(t.Elem(), reflect.Value{}, depth+1))
	case reflect.String:
		return words()
	case reflect.Bool:
		return truth()
	case reflect.Float32, reflect.Float64:
		return ratio(math.Inf(-1), math.Inf(1))
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		bits := t.Bits() - 1
		return whole(-1<<bits, 1<<bits-1)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return whole(0, math.MaxUint64>>(64-t.Bits()))
	}
	return whatever()
}

func structShape(t reflect.Type, preset reflect.Value, depth int) *shape {
	s := record()
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		var value reflect.Value
		if preset.IsValid() {
			value = preset.Field(i)
		}
		switch {
		case f.Anonymous && name == "":
			s.keys = append(s.keys, shapeOf(f.Type, value, depth+1).keys...)
			continue
		case !f.IsExported() || name == "-":
			continue
		case name == "":
			name = f.Name
		}
		k := key{name: name, shape: shapeOf(f.Type, value, depth+1), doc: f.Tag.Get("doc"), preset: shown(value)}
		if allowed := f.Tag.Get("oneof"); allowed != "" {
			k.shape.oneOf = strings.Split(allowed, ",")
		}
		s.keys = append(s.keys, k)
	}
	return s
}

// shown writes a default for a reader. It omits long values.
func shown(v reflect.Value) string {
	if !v.IsValid() || !v.CanInterface() || v.IsZero() && v.Kind() != reflect.Bool && v.Kind() != reflect.Int && v.Kind() != reflect.Float64 {
		return ""
	}
	b, err := json.Marshal(v.Interface())
	if err != nil || len(b) > 60 {
		return ""
	}
	return strings.Trim(string(b), `"`)
}
