package config

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"parley/internal/near"
)

// checker compares nodes with shapes. It reports everything that does not fit and continues.
type checker struct {
	*report
	root *shape // where to look for keys that are in the wrong mapping
	// meant holds the keys that misspelled ones probably mean: they are not reported as missing.
	meant map[string]bool
}

// value returns n as encoding/json would decode it. It reports what does not fit s and leaves it out.
func (c *checker) value(n *node, s *shape, p path) (any, bool) {
	if n.form == broken {
		return nil, false
	}
	switch s.form {
	case mapping:
		if n.form == text && s.short != "" {
			v, ok := c.text(n, s.key(s.short).shape, p)
			return map[string]any{s.short: v}, ok
		}
		if n.form == mapping {
			return c.mapping(n, s, p), true
		}
	case list:
		if n.form == list {
			return c.list(n, s, p)
		}
	case text:
		if n.form == text {
			return c.text(n, s, p)
		}
	case integer:
		if n.form == integer {
			return c.whole(n, s, p)
		}
	case number:
		if n.form == integer || n.form == number {
			return c.number(n, s, p)
		}
	case boolean:
		if n.form == boolean {
			return n.flag, true
		}
	case duration:
		if n.form == text {
			return c.duration(n, s, p)
		}
	case anything:
		return c.anything(n, p)
	}
	c.add(at(n), p, "wants %s, found %s%s", s.want(), c.found(n), advice(n, s))
	return nil, false
}

// at returns the position to report for n: a missing value has only its key.
func at(n *node) place {
	if n.form == nothing {
		return n.key
	}
	return n.at
}

// advice suggests how to write the value, if n shows it.
func advice(n *node, s *shape) string {
	switch {
	case n.form == nothing:
		return ": give it a value or leave the key out"
	case s.form == text && (n.form == integer || n.form == number):
		return ": put it in quotes"
	case s.form == text && n.form == boolean:
		if strings.EqualFold(n.text, "false") {
			return ": put it in quotes, or leave the key out"
		}
		return ": put it in quotes"
	case s.form == list && n.form != mapping:
		return ": put it in brackets, as [a, b]"
	case s.form == duration && (n.form == integer || n.form == number):
		return ": add a unit, as " + n.text + "s"
	case (s.form == integer || s.form == number) && n.form == text && numberText.MatchString(n.text):
		return ": leave the quotes out"
	case s.form == boolean && n.form == text && slices.Contains([]string{"yes", "on", "no", "off"}, strings.ToLower(n.text)):
		return ": write true or false"
	}
	return ""
}

func (c *checker) mapping(n *node, s *shape, p path) map[string]any {
	out := make(map[string]any, len(n.fields))
	for _, f := range n.fields {
		here := p.to(f.name)
		elem := s.member(f.name)
		if elem == nil {
			c.unknown(f, s, here)
			continue
		}
		if v, ok := c.value(f.value, elem, here); ok {
			out[f.name] = v
		}
	}
	c.complete(n, s, p)
	return out
}

// complete reports missing keys, and keys that exclude each other.
func (c *checker) complete(n *node, s *shape, p path) {
	for _, k := range s.keys {
		if k.needed && n.field(k.name) == nil && !c.meant[p.to(k.name).String()] {
			c.add(n.key, p.to(k.name), "is missing: %s", strings.TrimSuffix(k.doc, "."))
		}
	}
	if len(n.fields) < s.least {
		c.add(n.key, p, "is empty: give at least one %s", s.inside())
	}
	if s.apart[0] == "" {
		return
	}
	one, other := s.apart[0], s.apart[1]
	switch has := n.field(other); {
	case has != nil && n.field(one) != nil:
		c.add(has.key, p.to(other), "cannot be combined with %s: give one of them", one)
	case has == nil && n.field(one) == nil && s.either && !c.meant[p.to(one).String()] && !c.meant[p.to(other).String()]:
		c.add(n.key, p, "wants %s or %s; %s: %s", one, other, one, s.key(one).doc)
	}
}

// inside describes what a mapping contains, as "of matrix, until".
func (s *shape) inside() string {
	if s.free != "" {
		return s.free + " with its value"
	}
	return "of " + anyOf(s.names())
}

// unknown reports a key that s does not have, with the likely meaning and the allowed keys.
func (c *checker) unknown(f field, s *shape, p path) {
	if c.full() {
		return
	}
	name := near.Name(f.name, append(s.names(), s.within.paths()...))
	for _, k := range s.keys {
		if slices.Contains(k.also, strings.ToLower(f.name)) {
			name = k.name
		}
	}
	hint := ""
	if name != "" {
		c.meant[append(slices.Clone(p[:len(p)-1]), name).String()] = true
		hint = "; did you mean " + name + "?"
	} else if home := home(c.root, f.name); home != "" {
		hint = "; it belongs at " + home
	}
	if len(s.keys) == 0 {
		c.add(f.value.key, p, "unknown key%s none is allowed here", orSemicolon(hint))
		return
	}
	c.add(f.value.key, p, "unknown key%s allowed: %s", orSemicolon(hint), anyOf(s.names()))
}

func orSemicolon(hint string) string {
	if strings.HasSuffix(hint, "?") {
		return hint
	}
	return hint + ";"
}

// home returns the path nearest to the root at which a key of that name is allowed, or "".
func home(root *shape, name string) string {
	type level struct {
		shape *shape
		path  path
	}
	for next := []level{{root, nil}}; len(next) > 0; {
		var below []level
		for _, l := range next {
			if l.shape.key(name) != nil {
				return l.path.to(name).String()
			}
			for _, k := range l.shape.keys {
				below = append(below, level{k.shape, l.path.to(k.name)})
			}
			if l.shape.free != "" {
				below = append(below, level{l.shape.elem, l.path.to(l.shape.free)})
			}
		}
		next = below
	}
	return ""
}

func (c *checker) list(n *node, s *shape, p path) (any, bool) {
	out := make([]any, 0, len(n.items))
	for i, item := range n.items {
		if v, ok := c.value(item, s.elem, p.to("["+strconv.Itoa(i)+"]")); ok {
			out = append(out, v)
		}
	}
	if len(n.items) < s.least {
		c.add(n.at, p, "is an empty list: give at least one, or leave the key out")
		return nil, false
	}
	return out, true
}

func (c *checker) text(n *node, s *shape, p path) (any, bool) {
	if len(s.oneOf) > 0 && !slices.Contains(s.oneOf, n.text) {
		c.add(n.at, p, "wants %s, found %s%s", s.want(), c.found(n), meant(n.text, s.oneOf))
		return nil, false
	}
	if utf8.RuneCountInString(n.text) < s.least {
		c.add(n.at, p, "is an empty text: give it one, or leave the key out")
		return nil, false
	}
	return n.text, true
}

func (c *checker) whole(n *node, s *shape, p path) (any, bool) {
	if i, err := strconv.ParseInt(n.text, 10, 64); err == nil && i >= s.low && (i < 0 || uint64(i) <= s.high) {
		return json.Number(n.text), true
	}
	if u, err := strconv.ParseUint(n.text, 10, 64); err == nil && u <= s.high && (s.low <= 0 || u >= uint64(s.low)) {
		return json.Number(n.text), true
	}
	limit := s.want()
	if s.low == math.MinInt64 || s.high >= math.MaxInt32 {
		limit = "a whole number, " + strconv.FormatInt(s.low, 10) + " to " + strconv.FormatUint(s.high, 10)
	}
	c.add(n.at, p, "wants %s, found %s", limit, c.found(n))
	return nil, false
}

func (c *checker) number(n *node, s *shape, p path) (any, bool) {
	f, err := strconv.ParseFloat(n.text, 64)
	ok := err == nil && !math.IsInf(f, 0) && !math.IsNaN(f) &&
		(f > s.min || f == s.min && !s.above) && (f < s.max || f == s.max && !s.below)
	if !ok {
		c.add(n.at, p, "wants %s, found %s", s.want(), c.found(n))
		return nil, false
	}
	return json.Number(n.text), true
}

func (c *checker) duration(n *node, s *shape, p path) (any, bool) {
	d, err := time.ParseDuration(n.text)
	if err != nil || d < 0 || d == 0 && s.above {
		c.add(n.at, p, "wants %s, found %s", s.want(), c.found(n))
		return nil, false
	}
	return json.Number(strconv.FormatInt(int64(d), 10)), true
}

// anything accepts a value that only its reader can check.
func (c *checker) anything(n *node, p path) (any, bool) {
	switch n.form {
	case mapping:
		return c.mapping(n, dict("NAME", whatever()), p), true
	case list:
		return c.list(n, listOf(whatever()), p)
	case text:
		return n.text, true
	case boolean:
		return n.flag, true
	case integer, number:
		return c.number(n, ratio(math.Inf(-1), math.Inf(1)), p)
	}
	return nil, true
}
