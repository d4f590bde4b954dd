package planfile

import (
	"cmp"
	"encoding"
	"encoding/json"
	"math"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"

	"parley/internal/kit/fieldtag"
	"parley/internal/kit/yamltree"
	"parley/world"
)

// Shape describes the allowed values.
type Shape struct {
	Form yamltree.Form
	// Rule is what the tags of a field say. Filled holds for a list and a mapping too.
	fieldtag.Rule
	// low and high bound a whole number, also by its type.
	low  int64
	high uint64
	// asText keeps a duration as it is written, for a world.Duration. Others become nanoseconds.
	asText bool
	// Unit is the unit of a number. Empty: none.
	Unit string
	// Elem is the shape of the items of a list, or of the values of a mapping with free keys.
	Elem *Shape
	// Free is the placeholder for the free keys of a mapping, as NAME. Empty: it has keys.
	Free string
	Keys []Key
	// Within are params whose inner keys may be given as paths with dots, each with a list of values:
	// set.turns: [4, 8]. Nil: none.
	Within *Shape
	// Shorthand is the key that a text instead of the mapping sets. Empty: none.
	Shorthand string
	// Exclusive are two keys of which at most one may be given.
	Exclusive [2]string
	// AnyOf are keys of which at least one must be given. Nil: none must.
	AnyOf []string
}

// Key is a key of a mapping.
type Key struct {
	Name  string
	Shape *Shape
	// Default is the default for a reader. Empty: none.
	Default  string
	Required bool
	Doc      string
	// Aliases are other names that people use for it.
	Aliases []string
}

func textShape() *Shape { return &Shape{Form: yamltree.Text} }

func boolShape() *Shape { return &Shape{Form: yamltree.Boolean} }

func anyShape() *Shape { return &Shape{Form: yamltree.Anything} }

func listShape(elem *Shape) *Shape { return &Shape{Form: yamltree.List, Elem: elem} }

// oneOrMore returns the shape of a list that is not empty.
func oneOrMore(elem *Shape) *Shape {
	return &Shape{Form: yamltree.List, Elem: elem, Rule: fieldtag.Rule{Filled: true}}
}

// Dollars returns the shape of an amount of money that a run may cost.
func Dollars() *Shape {
	return &Shape{Form: yamltree.Number, Rule: fieldtag.Of(`range:"0.0001..1000000000"`), Unit: "an amount in US dollars"}
}

// Record returns the shape of a mapping with these keys only.
func Record(keys ...Key) *Shape { return &Shape{Form: yamltree.Mapping, Keys: keys} }

// mapShape returns the shape of a mapping with keys of the user's choice; free is their name in errors and documents.
func mapShape(free string, elem *Shape) *Shape {
	return &Shape{Form: yamltree.Mapping, Free: free, Elem: elem}
}

// Key returns the key of that name, or nil.
func (s *Shape) Key(name string) *Key {
	for i := range s.Keys {
		if s.Keys[i].Name == name {
			return &s.Keys[i]
		}
	}
	return nil
}

// Names lists the keys in their order.
func (s *Shape) Names() []string {
	names := make([]string, len(s.Keys))
	for i, k := range s.Keys {
		names[i] = k.Name
	}
	return names
}

// Describe describes the allowed values, as "a whole number, 1 to 10".
func (s *Shape) Describe() string {
	what := "a value"
	switch s.Form {
	case yamltree.Text:
		if len(s.OneOf) > 0 {
			return s.Rule.String()
		}
		return "a text"
	case yamltree.Boolean:
		return "true or false"
	case yamltree.Integer:
		what = "a whole number"
	case yamltree.Number:
		what = cmp.Or(s.Unit, "a number")
	case yamltree.Duration:
		switch what = "a time with its unit"; {
		case s.High == math.MaxFloat64 && s.Above:
			return what + ", as 90s or 10m"
		case s.High == math.MaxFloat64:
			return what + ", as 90s or 10m, or 0s"
		}
	case yamltree.List:
		return "a list"
	case yamltree.Mapping:
		if s.Shorthand != "" {
			return "a mapping (key: value), or a text for its " + s.Shorthand
		}
		return "a mapping (key: value)"
	}
	if s.Bounded() {
		return what + ", " + s.Rule.String()
	}
	return what
}

// member returns the shape of the value under a key, or nil if the key is not allowed.
func (s *Shape) member(name string) *Shape {
	if s.Free != "" {
		return s.Elem
	}
	if k := s.Key(name); k != nil {
		return k.Shape
	}
	if inner := s.Within.inner(name); inner != nil {
		return oneOrMore(inner)
	}
	return nil
}

// inner returns the shape of the value at a path with dots. Below free keys the rest of the path is
// one key, including dots.
func (s *Shape) inner(name string) *Shape {
	head, rest, dotted := strings.Cut(name, ".")
	if s == nil || !dotted || rest == "" {
		return nil
	}
	k := s.Key(head)
	switch {
	case k == nil || k.Shape.Form != yamltree.Mapping:
		return nil
	case k.Shape.Free != "":
		return k.Shape.Elem
	}
	if below := k.Shape.Key(rest); below != nil {
		return below.Shape
	}
	return k.Shape.inner(rest)
}

// paths lists the paths one level within the keys, as style.tone.
func (s *Shape) paths() []string {
	if s == nil {
		return nil
	}
	var all []string
	for _, k := range s.Keys {
		for _, inner := range k.Shape.Keys {
			all = append(all, k.Name+"."+inner.Name)
		}
	}
	return all
}

// shapeOf returns the shape of values of a Go type. preset holds the defaults of a struct, if there are any.
func shapeOf(t reflect.Type, preset reflect.Value, depth int) *Shape {
	if t == reflect.TypeFor[world.Duration]() {
		return &Shape{Form: yamltree.Duration, Rule: fieldtag.Of(`range:"0s"`), asText: true}
	}
	if t == reflect.TypeFor[time.Duration]() {
		return &Shape{Form: yamltree.Duration, Rule: fieldtag.Of(`range:">0s"`)}
	}
	if reads := reflect.PointerTo(t); depth > yamltree.MaxDepth || reads.Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return anyShape() // its own method reports errors when it is read
	} else if reads.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		return textShape()
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
		return listShape(shapeOf(t.Elem(), reflect.Value{}, depth+1))
	case reflect.Map:
		return mapShape("NAME", shapeOf(t.Elem(), reflect.Value{}, depth+1))
	case reflect.String:
		return textShape()
	case reflect.Bool:
		return boolShape()
	case reflect.Float32, reflect.Float64:
		return &Shape{Form: yamltree.Number}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		bits := t.Bits() - 1
		return &Shape{Form: yamltree.Integer, low: -1 << bits, high: 1<<bits - 1}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return &Shape{Form: yamltree.Integer, Rule: fieldtag.Of(`range:"0"`), high: math.MaxUint64 >> (64 - t.Bits())}
	}
	return anyShape()
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
		k := Key{Name: name, Shape: shapeOf(f.Type, value, depth+1), Doc: f.Tag.Get("doc"), Default: showDefault(value)}
		applyTags(&k, f)
		s.Keys = append(s.Keys, k)
	}
	return s
}

// applyTags adds what the tags of a field say, apart from its name and its doc:
//   - default describes the default where no value can show it, and aliases lists other names that people use;
//   - required means that the key must be there;
//   - range, oneof and filled say which values are allowed: see package fieldtag;
//   - nonempty means that a list is not empty;
//   - free is what documents call the keys of a mapping;
//   - form is "dollars", or "record" for a struct that decodes itself.
func applyTags(k *Key, f reflect.StructField) {
	k.Default = cmp.Or(f.Tag.Get("default"), k.Default)
	k.Required = f.Tag.Get("required") != ""
	if names := f.Tag.Get("aliases"); names != "" {
		k.Aliases = strings.Split(names, ",")
	}
	switch f.Tag.Get("form") {
	case "dollars":
		k.Shape = Dollars()
	case "record":
		k.Shape = structShape(f.Type.Elem(), reflect.Value{}, 0)
	}
	within := k.Shape
	for ; within.Elem != nil; within = within.Elem {
		if free := f.Tag.Get("free"); free != "" && within.Free != "" {
			within.Free = free
		}
		within.Filled = within.Form == yamltree.List && f.Tag.Get("nonempty") != ""
	}
	rule := fieldtag.Of(f.Tag)
	if rule.Bounded() || !within.Bounded() { // otherwise the bounds of its type hold
		within.Rule = rule
	}
	if rule.Bounded() && within.Form == yamltree.Integer {
		within.low = int64(rule.Low)
		if rule.Above {
			within.low++
		}
		if rule.High < math.MaxInt64 {
			within.high = uint64(rule.High)
			if rule.Below {
				within.high--
			}
		}
	}
}

// showDefault writes a default for a reader. It omits long values.
func showDefault(v reflect.Value) string {
	if !v.IsValid() || !v.CanInterface() || v.IsZero() && v.Kind() != reflect.Bool && v.Kind() != reflect.Int && v.Kind() != reflect.Float64 {
		return ""
	}
	b, err := json.Marshal(v.Interface())
	if err != nil || len(b) > 60 {
		return ""
	}
	return strings.Trim(string(b), `"`)
}

type object map[string]any

// JSONSchema returns s as a JSON Schema.
func (s *Shape) JSONSchema() object {
	switch s.Form {
	case yamltree.Text:
		o := object{"type": "string"}
		if len(s.OneOf) > 0 {
			o["enum"] = s.OneOf
		}
		if s.Filled {
			o["minLength"] = 1
		}
		return o
	case yamltree.Boolean:
		return object{"type": "boolean"}
	case yamltree.Integer:
		return object{"type": "integer", "minimum": json.Number(strconv.FormatInt(s.low, 10)), "maximum": json.Number(strconv.FormatUint(s.high, 10))}
	case yamltree.Number:
		return s.numberSchema()
	case yamltree.Duration:
		o := object{"type": "string", "pattern": `^\+?(0|(([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$`}
		if !s.Holds(0) {
			o["not"] = object{"pattern": "^[^1-9]*$"}
		}
		return o
	case yamltree.List:
		o := object{"type": "array", "items": s.Elem.JSONSchema()}
		if s.Filled {
			o["minItems"] = 1
		}
		return o
	case yamltree.Mapping:
		return s.mappingSchema()
	}
	return object{}
}

func (s *Shape) numberSchema() object {
	o := object{"type": "number"}
	low, high := "minimum", "maximum"
	if s.Above {
		low = "exclusiveMinimum"
	}
	if s.Below {
		high = "exclusiveMaximum"
	}
	if s.Bounded() {
		o[low] = s.Low
	}
	if s.Bounded() && s.High < math.MaxFloat64 {
		o[high] = s.High
	}
	return o
}

func (s *Shape) mappingSchema() object {
	o := object{"type": "object"}
	if s.Filled {
		o["minProperties"] = 1
	}
	if s.Free != "" {
		o["additionalProperties"] = s.Elem.JSONSchema()
		return o
	}
	properties := object{}
	var needed []string
	for _, k := range s.Keys {
		one := k.Shape.JSONSchema()
		if d := k.describe(); d != "" {
			one["description"] = d
		}
		properties[k.Name] = one
		if k.Required {
			needed = append(needed, k.Name)
		}
	}
	o["properties"], o["additionalProperties"] = properties, false
	if inner := s.Within.innerSchemas(); len(inner) > 0 {
		o["patternProperties"] = inner
	}
	if needed != nil {
		o["required"] = needed
	}
	if s.Exclusive[0] != "" {
		o["not"] = object{"required": s.Exclusive}
	}
	var either []any
	for _, name := range s.AnyOf {
		either = append(either, object{"required": []string{name}})
	}
	if either != nil {
		o["anyOf"] = either
	}
	if s.Shorthand != "" {
		return object{"anyOf": []any{s.Key(s.Shorthand).Shape.JSONSchema(), o}}
	}
	return o
}

// innerSchemas returns the schemas of lists of values for paths within params, by pattern.
func (s *Shape) innerSchemas() object {
	if s == nil {
		return nil
	}
	inner := object{}
	for _, k := range s.Keys {
		if k.Shape.Form != yamltree.Mapping {
			continue
		}
		list := object{"type": "array", "minItems": 1}
		if k.Shape.Free != "" {
			list["items"] = k.Shape.Elem.JSONSchema()
		}
		inner["^"+regexp.QuoteMeta(k.Name)+"[.]."] = list
	}
	return inner
}

// describe returns a key's description and its default.
func (k Key) describe() string {
	if k.Default == "" {
		return k.Doc
	}
	return strings.TrimSpace(k.Doc + " Default: " + k.Default + ".")
}
