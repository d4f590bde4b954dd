package config

import (
	"math"
	"strconv"
	"strings"

	"parley/internal/yamltree"
)

// shape describes the allowed values. One tree of shapes (see keys) drives decoding, the JSON Schema
// and the reference, so they always agree.
type shape struct {
	form yamltree.Form
	// oneOf are the allowed texts. Empty: any.
	oneOf []string
	// low and high bound a whole number.
	low  int64
	high uint64
	// min and max bound a number. above excludes min, and below excludes max. For a time, above
	// excludes 0.
	min, max     float64
	above, below bool
	// elem is the shape of the items of a list, or of the values of a mapping with free keys.
	elem *shape
	// free is the placeholder for the free keys of a mapping, as NAME. Empty: it has keys.
	free string
	keys []key
	// within are params whose inner keys may be given as paths with dots, each with a list of values:
	// set.turns: [4, 8]. Nil: none.
	within *shape
	// short is the key that a text instead of the mapping sets. Empty: none.
	short string
	// least is the smallest number of items of a list, keys of a mapping or characters of a text.
	least int
	// apart are two keys of which at most one may be given. With either, one is required.
	apart  [2]string
	either bool
}

// key is a key of a mapping.
type key struct {
	name  string
	shape *shape
	// preset is the default for a reader. Empty: none.
	preset string
	needed bool
	doc    string
	// also are other names that people use for it.
	also []string
}

func words(oneOf ...string) *shape { return &shape{form: yamltree.Text, oneOf: oneOf} }
func word() *shape                 { return &shape{form: yamltree.Text, least: 1} }
func truth() *shape                { return &shape{form: yamltree.Boolean} }
func span() *shape                 { return &shape{form: yamltree.Duration, above: true} }
func spanOrNone() *shape           { return &shape{form: yamltree.Duration} }
func whatever() *shape             { return &shape{form: yamltree.Anything} }
func listOf(elem *shape) *shape    { return &shape{form: yamltree.List, elem: elem} }

func whole(low int64, high uint64) *shape {
	return &shape{form: yamltree.Integer, low: low, high: high}
}
func count() *shape { return whole(1, math.MaxInt32) }

func ratio(lo, hi float64) *shape { return &shape{form: yamltree.Number, min: lo, max: hi} }

func record(keys ...key) *shape { return &shape{form: yamltree.Mapping, keys: keys} }

func dict(free string, elem *shape) *shape {
	return &shape{form: yamltree.Mapping, free: free, elem: elem}
}

// key returns the key of that name, or nil.
func (s *shape) key(name string) *key {
	for i := range s.keys {
		if s.keys[i].name == name {
			return &s.keys[i]
		}
	}
	return nil
}

// names lists the keys in their order.
func (s *shape) names() []string {
	names := make([]string, len(s.keys))
	for i, k := range s.keys {
		names[i] = k.name
	}
	return names
}

// want describes the allowed values, as "a whole number, 1 to 10".
func (s *shape) want() string {
	switch s.form {
	case yamltree.Text:
		if len(s.oneOf) > 0 {
			return "one of " + strings.Join(s.oneOf, ", ")
		}
		return "a text"
	case yamltree.Boolean:
		return "true or false"
	case yamltree.Integer:
		return "a whole number" + s.bounds()
	case yamltree.Number:
		return "a number" + s.bounds()
	case yamltree.Duration:
		if !s.above {
			return "a time with its unit, as 90s or 10m, or 0s"
		}
		return "a time with its unit, as 90s or 10m"
	case yamltree.List:
		return "a list"
	case yamltree.Mapping:
		if s.short != "" {
			return "a mapping (key: value), or a text for its " + s.short
		}
		return "a mapping (key: value)"
	}
	return "a value"
}

// bounds describes the range of a number, as ", 0 to 2".
func (s *shape) bounds() string {
	if s.form == yamltree.Integer {
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
	low := "at least " + plain(s.min)
	if s.above {
		low = "more than " + plain(s.min)
	}
	switch {
	case math.IsInf(s.min, -1):
		return ""
	case s.max >= math.MaxFloat64:
		return ", " + low
	case s.above || s.below:
		return ", " + low + " and less than " + plain(s.max)
	}
	return ", " + plain(s.min) + " to " + plain(s.max)
}

// member returns the shape of the value under a key, or nil if the key is not allowed.
func (s *shape) member(name string) *shape {
	if s.free != "" {
		return s.elem
	}
	if k := s.key(name); k != nil {
		return k.shape
	}
	if inner := s.within.inner(name); inner != nil {
		return &shape{form: yamltree.List, elem: inner, least: 1}
	}
	return nil
}

// inner returns the shape of the value at a path with dots. Below free keys the rest of the path is
// one key, including dots.
func (s *shape) inner(name string) *shape {
	head, rest, dotted := strings.Cut(name, ".")
	if s == nil || !dotted || rest == "" {
		return nil
	}
	k := s.key(head)
	switch {
	case k == nil || k.shape.form != yamltree.Mapping:
		return nil
	case k.shape.free != "":
		return k.shape.elem
	}
	if below := k.shape.key(rest); below != nil {
		return below.shape
	}
	return k.shape.inner(rest)
}

// paths lists the paths one level within the keys, as style.tone.
func (s *shape) paths() []string {
	if s == nil {
		return nil
	}
	var all []string
	for _, k := range s.keys {
		for _, inner := range k.shape.keys {
			all = append(all, k.name+"."+inner.name)
		}
	}
	return all
}
