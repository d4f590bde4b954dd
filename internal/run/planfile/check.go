package planfile

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"parley/internal/kit/text"
	"parley/internal/kit/yamltree"
)

// Checker compares nodes with shapes. It reports everything that does not fit and continues.
type Checker struct {
	*Report
	Tree *yamltree.Node // the document
	Root *Shape         // where to look for keys that are in the wrong mapping
	// Meant holds the keys that misspelled ones probably mean: they are not reported as missing.
	Meant map[string]bool
}

// Value returns n as encoding/json would decode it. It reports what does not fit s and leaves it out.
func (c *Checker) Value(n *yamltree.Node, s *Shape, p yamltree.Path) (any, bool) {
	if n.Form == yamltree.Broken {
		return nil, false
	}
	switch s.Form {
	case yamltree.Mapping:
		if n.Form == yamltree.Text && s.Shorthand != "" {
			v, ok := c.text(n, s.Key(s.Shorthand).Shape, p)
			return map[string]any{s.Shorthand: v}, ok
		}
		if n.Form == yamltree.Mapping {
			return c.mapping(n, s, p), true
		}
	case yamltree.List:
		if n.Form == yamltree.List {
			return c.list(n, s, p)
		}
	case yamltree.Text:
		if n.Form == yamltree.Text {
			return c.text(n, s, p)
		}
	case yamltree.Integer:
		if n.Form == yamltree.Integer {
			return c.Int(n, s, p)
		}
	case yamltree.Number:
		if n.Form == yamltree.Integer || n.Form == yamltree.Number {
			return c.number(n, s, p)
		}
	case yamltree.Boolean:
		if n.Form == yamltree.Boolean {
			return n.Flag, true
		}
	case yamltree.Duration:
		if n.Form == yamltree.Text {
			return c.duration(n, s, p)
		}
	case yamltree.Anything:
		return c.Anything(n, p)
	}
	c.Add(at(n), p, "wants %s, found %s%s", s.Describe(), c.Found(n), advice(n, s))
	return nil, false
}

// at returns the position to report for n: a missing value has only its key.
func at(n *yamltree.Node) yamltree.Position {
	if n.Form == yamltree.Nothing {
		return n.Key
	}
	return n.At
}

// advice suggests how to write the value, if n shows it.
func advice(n *yamltree.Node, s *Shape) string {
	switch {
	case n.Form == yamltree.Nothing:
		return ": give it a value or leave the key out"
	case s.Form == yamltree.Text && (n.Form == yamltree.Integer || n.Form == yamltree.Number):
		return ": put it in quotes"
	case s.Form == yamltree.Text && n.Form == yamltree.Boolean:
		if strings.EqualFold(n.Text, "false") {
			return ": put it in quotes, or leave the key out"
		}
		return ": put it in quotes"
	case s.Form == yamltree.List && n.Form != yamltree.Mapping:
		return ": put it in brackets, as [a, b]"
	case s.Form == yamltree.Duration && (n.Form == yamltree.Integer || n.Form == yamltree.Number):
		return ": add a unit, as " + n.Text + "s"
	case (s.Form == yamltree.Integer || s.Form == yamltree.Number) && n.Form == yamltree.Text && yamltree.NumberText.MatchString(n.Text):
		return ": leave the quotes out"
	case s.Form == yamltree.Number && n.Form == yamltree.Text:
		return yamltree.Point(n.Text)
	case s.Form == yamltree.Boolean && n.Form == yamltree.Text && slices.Contains([]string{"yes", "on", "no", "off"}, strings.ToLower(n.Text)):
		return ": write true or false"
	}
	return ""
}

func (c *Checker) mapping(n *yamltree.Node, s *Shape, p yamltree.Path) map[string]any {
	out := make(map[string]any, len(n.Fields))
	for _, f := range n.Fields {
		here := p.To(f.Name)
		elem := s.member(f.Name)
		if elem == nil {
			c.unknown(f, s, here)
			continue
		}
		if v, ok := c.Value(f.Value, elem, here); ok {
			out[f.Name] = v
		}
	}
	c.complete(n, s, p)
	return out
}

// complete reports missing keys, and keys that exclude each other.
func (c *Checker) complete(n *yamltree.Node, s *Shape, p yamltree.Path) {
	for _, k := range s.Keys {
		if k.Required && n.Field(k.Name) == nil && !c.Meant[p.To(k.Name).String()] {
			c.Add(n.Key, p.To(k.Name), "is missing: %s", strings.TrimSuffix(k.Doc, "."))
		}
	}
	if len(n.Fields) < s.MinLen {
		c.Add(n.Key, p, "is empty: give at least one %s", s.inside())
	}
	if s.Exclusive[0] == "" {
		return
	}
	one, other := s.Exclusive[0], s.Exclusive[1]
	switch has := n.Field(other); {
	case has != nil && n.Field(one) != nil:
		c.Add(has.Key, p.To(other), "cannot be combined with %s: give one of them", one)
	case has == nil && n.Field(one) == nil && s.OneRequired && !c.Meant[p.To(one).String()] && !c.Meant[p.To(other).String()]:
		c.Add(n.Key, p, "wants %s or %s; %s: %s", one, other, one, s.Key(one).Doc)
	}
}

// inside describes what a mapping contains, as "of matrix, until".
func (s *Shape) inside() string {
	if s.Free != "" {
		return s.Free + " with its value"
	}
	return "of " + documentListed(s.Names())
}

// unknown reports a key that s does not have, with the likely meaning and the allowed keys.
func (c *Checker) unknown(f yamltree.Field, s *Shape, p yamltree.Path) {
	if c.Full() {
		return
	}
	name := text.Nearest(f.Name, append(s.Names(), s.Within.paths()...))
	for _, k := range s.Keys {
		if slices.Contains(k.Aliases, strings.ToLower(f.Name)) {
			name = k.Name
		}
	}
	hint := ""
	if name != "" {
		c.Meant[append(slices.Clone(p[:len(p)-1]), name).String()] = true
		hint = "; did you mean " + name + "?"
	} else if home := home(c.Root, f.Name); home != "" {
		hint = "; it belongs at " + home
	}
	if len(s.Keys) == 0 {
		c.Add(f.Value.Key, p, "unknown key%s none is allowed here", schemaHint(hint))
		return
	}
	c.Add(f.Value.Key, p, "unknown key%s allowed: %s", schemaHint(hint), documentListed(s.Names()))
}

// schemaHint returns a hint with the punctuation that follows it in an error.
func schemaHint(hint string) string {
	if strings.HasSuffix(hint, "?") {
		return hint
	}
	return hint + ";"
}

// home returns the path nearest to the root at which a key of that name is allowed, or "".
func home(root *Shape, name string) string {
	type level struct {
		shape *Shape
		path  yamltree.Path
	}
	for next := []level{{root, nil}}; len(next) > 0; {
		var below []level
		for _, l := range next {
			if l.shape.Key(name) != nil {
				return l.path.To(name).String()
			}
			for _, k := range l.shape.Keys {
				below = append(below, level{k.Shape, l.path.To(k.Name)})
			}
			if l.shape.Free != "" {
				below = append(below, level{l.shape.Elem, l.path.To(l.shape.Free)})
			}
		}
		next = below
	}
	return ""
}

func (c *Checker) list(n *yamltree.Node, s *Shape, p yamltree.Path) (any, bool) {
	out := make([]any, 0, len(n.Items))
	for i, item := range n.Items {
		if v, ok := c.Value(item, s.Elem, p.To(yamltree.Index(i))); ok {
			out = append(out, v)
		}
	}
	if len(n.Items) < s.MinLen {
		c.Add(n.At, p, "is an empty list: give at least one, or leave the key out")
		return nil, false
	}
	return out, true
}

func (c *Checker) text(n *yamltree.Node, s *Shape, p yamltree.Path) (any, bool) {
	if len(s.oneOf) > 0 && !slices.Contains(s.oneOf, n.Text) {
		c.Add(n.At, p, "wants %s, found %s%s", s.Describe(), c.Found(n), text.Suggest(n.Text, s.oneOf))
		return nil, false
	}
	if utf8.RuneCountInString(n.Text) < s.MinLen {
		c.Add(n.At, p, "is an empty text: give it one, or leave the key out")
		return nil, false
	}
	return n.Text, true
}

// Int checks that a value is a whole number within the bounds of a shape.
func (c *Checker) Int(n *yamltree.Node, s *Shape, p yamltree.Path) (any, bool) {
	if i, err := strconv.ParseInt(n.Text, 10, 64); err == nil && i >= s.low && (i < 0 || uint64(i) <= s.high) {
		return json.Number(n.Text), true
	}
	if u, err := strconv.ParseUint(n.Text, 10, 64); err == nil && u <= s.high && (s.low <= 0 || u >= uint64(s.low)) {
		return json.Number(n.Text), true
	}
	limit := s.Describe()
	if s.low == math.MinInt64 || s.high >= math.MaxInt32 {
		limit = "a whole number, " + strconv.FormatInt(s.low, 10) + " to " + strconv.FormatUint(s.high, 10)
	}
	c.Add(n.At, p, "wants %s, found %s", limit, c.Found(n))
	return nil, false
}

func (c *Checker) number(n *yamltree.Node, s *Shape, p yamltree.Path) (any, bool) {
	f, err := strconv.ParseFloat(n.Text, 64)
	ok := err == nil && !math.IsInf(f, 0) && !math.IsNaN(f) &&
		(f > s.Min || f == s.Min && !s.Above) && (f < s.Max || f == s.Max && !s.Below)
	if !ok {
		c.Add(n.At, p, "wants %s, found %s", s.Describe(), c.Found(n))
		return nil, false
	}
	return json.Number(n.Text), true
}

func (c *Checker) duration(n *yamltree.Node, s *Shape, p yamltree.Path) (any, bool) {
	d, err := time.ParseDuration(n.Text)
	if err != nil || d < 0 || d == 0 && s.Above {
		c.Add(n.At, p, "wants %s, found %s", s.Describe(), c.Found(n))
		return nil, false
	}
	return json.Number(strconv.FormatInt(int64(d), 10)), true
}

// Anything accepts a value that only its reader can check.
func (c *Checker) Anything(n *yamltree.Node, p yamltree.Path) (any, bool) {
	switch n.Form {
	case yamltree.Mapping:
		return c.mapping(n, schemaMap("NAME", schemaAny()), p), true
	case yamltree.List:
		return c.list(n, schemaList(schemaAny()), p)
	case yamltree.Text:
		return n.Text, true
	case yamltree.Boolean:
		return n.Flag, true
	case yamltree.Integer, yamltree.Number:
		return c.number(n, schemaNumber(math.Inf(-1), math.Inf(1)), p)
	}
	return nil, true
}
