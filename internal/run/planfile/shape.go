package planfile

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"parley/internal/kit/yamltree"
)

// Shape describes the allowed values. One tree of shapes (see keys) drives decoding, the JSON Schema
// and the reference, so they always agree.
type Shape struct {
	Form yamltree.Form
	// oneOf are the allowed texts. Empty: any.
	oneOf []string
	// low and high bound a whole number.
	low  int64
	high uint64
	// Min and max bound a number. above excludes min, and below excludes max. For a time, above
	// excludes 0.
	Min, Max     float64
	Above, Below bool
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
	// MinLen is the smallest number of items of a list, keys of a mapping or characters of a text.
	MinLen int
	// Exclusive are two keys of which at most one may be given. With either, one is required.
	Exclusive   [2]string
	OneRequired bool
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

// schemaText returns the shape of a text; with oneOf, of one of these texts.
func schemaText(oneOf ...string) *Shape { return &Shape{Form: yamltree.Text, oneOf: oneOf} }

// nonEmpty returns the shape of a text that is not empty.
func nonEmpty() *Shape { return &Shape{Form: yamltree.Text, MinLen: 1} }

// schemaBool returns the shape of true and false.
func schemaBool() *Shape { return &Shape{Form: yamltree.Boolean} }

// schemaDuration returns the shape of a duration above 0.
func schemaDuration() *Shape { return &Shape{Form: yamltree.Duration, Above: true} }

// durationOrZero returns the shape of a duration of 0 or more.
func durationOrZero() *Shape { return &Shape{Form: yamltree.Duration} }

// schemaAny returns the shape of any value.
func schemaAny() *Shape { return &Shape{Form: yamltree.Anything} }

// schemaList returns the shape of a list of elements.
func schemaList(elem *Shape) *Shape { return &Shape{Form: yamltree.List, Elem: elem} }

// schemaInt returns the shape of a whole number from low to high.
func schemaInt(low int64, high uint64) *Shape {
	return &Shape{Form: yamltree.Integer, low: low, high: high}
}

// count returns the shape of a whole number of 1 or more.
func count() *Shape { return schemaInt(1, math.MaxInt32) }

// schemaNumber returns the shape of a number from lo to hi.
func schemaNumber(lo, hi float64) *Shape { return &Shape{Form: yamltree.Number, Min: lo, Max: hi} }

// Dollars returns the shape of an amount of money that a run may cost.
func Dollars() *Shape {
	return &Shape{Form: yamltree.Number, Min: 0.0001, Max: 1e9, Unit: "an amount in US dollars"}
}

// Record returns the shape of a mapping with these keys only.
func Record(keys ...Key) *Shape { return &Shape{Form: yamltree.Mapping, Keys: keys} }

// schemaMap returns the shape of a mapping with keys of the user's choice; free is their name in errors and documents.
func schemaMap(free string, elem *Shape) *Shape {
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
	switch s.Form {
	case yamltree.Text:
		if len(s.oneOf) > 0 {
			return "one of " + strings.Join(slices.DeleteFunc(slices.Clone(s.oneOf), func(t string) bool { return t == "" }), ", ") // "" is the same as no key
		}
		return "a text"
	case yamltree.Boolean:
		return "true or false"
	case yamltree.Integer:
		return "a whole number" + s.bounds()
	case yamltree.Number:
		return cmp.Or(s.Unit, "a number") + s.bounds()
	case yamltree.Duration:
		if !s.Above {
			return "a time with its unit, as 90s or 10m, or 0s"
		}
		return "a time with its unit, as 90s or 10m"
	case yamltree.List:
		return "a list"
	case yamltree.Mapping:
		if s.Shorthand != "" {
			return "a mapping (key: value), or a text for its " + s.Shorthand
		}
		return "a mapping (key: value)"
	}
	return "a value"
}

// bounds describes the range of a number, as ", 0 to 2".
func (s *Shape) bounds() string {
	if s.Form == yamltree.Integer {
		switch low := strconv.FormatInt(s.low, 10); {
		case s.low == math.MinInt64:
			return ""
		case s.high >= math.MaxInt32:
			return ", at least " + low
		default:
			return ", " + low + " to " + strconv.FormatUint(s.high, 10)
		}
	}
	plain := func(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
	low := "at least " + plain(s.Min)
	if s.Above {
		low = "more than " + plain(s.Min)
	}
	switch {
	case math.IsInf(s.Min, -1):
		return ""
	case s.Max >= math.MaxFloat64:
		return ", " + low
	case s.Above || s.Below:
		return ", " + low + " and less than " + plain(s.Max)
	}
	return ", " + plain(s.Min) + " to " + plain(s.Max)
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
		return &Shape{Form: yamltree.List, Elem: inner, MinLen: 1}
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
