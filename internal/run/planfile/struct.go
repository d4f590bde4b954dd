package planfile

import (
	"encoding"
	"encoding/json"
	"math"
	"reflect"
	"strings"

	"parley/internal/kit/yamltree"
)

// shapeOf returns the shape of values of a Go type. preset holds the defaults of a struct, if there are any.
func shapeOf(t reflect.Type, preset reflect.Value, depth int) *Shape {
	if reads := reflect.PointerTo(t); depth > yamltree.MaxDepth || reads.Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return schemaAny() // its own method reports errors when it is read
	} else if reads.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		return schemaText()
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
		return schemaList(shapeOf(t.Elem(), reflect.Value{}, depth+1))
	case reflect.Map:
		return schemaMap("NAME", shapeOf(t.Elem(), reflect.Value{}, depth+1))
	case reflect.String:
		return schemaText()
	case reflect.Bool:
		return schemaBool()
	case reflect.Float32, reflect.Float64:
		return schemaNumber(math.Inf(-1), math.Inf(1))
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		bits := t.Bits() - 1
		return schemaInt(-1<<bits, 1<<bits-1)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return schemaInt(0, math.MaxUint64>>(64-t.Bits()))
	}
	return schemaAny()
}

func structShape(t reflect.Type, preset reflect.Value, depth int) *Shape {
	s := Record()
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		var value reflect.Value
		if preset.IsValid() {
			value = preset.Field(i)
		}
		switch {
		case f.Anonymous && name == "":
			s.Keys = append(s.Keys, shapeOf(f.Type, value, depth+1).Keys...)
			continue
		case !f.IsExported() || name == "-":
			continue
		case name == "":
			name = f.Name
		}
		k := Key{Name: name, Shape: shapeOf(f.Type, value, depth+1), Doc: f.Tag.Get("doc"), Default: shown(value)}
		if allowed := f.Tag.Get("oneof"); allowed != "" {
			k.Shape.oneOf = strings.Split(allowed, ",")
		}
		s.Keys = append(s.Keys, k)
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
