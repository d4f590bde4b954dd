package planfile

import (
	"bytes"
	"encoding/json"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/internal/kit/text"
	"parley/internal/kit/yamltree"
)

// checker compares nodes with shapes. It reports everything that does not fit and continues.
type checker struct {
	*report
	Tree *yamltree.Node // the document
	Root *Shape         // where to look for keys that are in the wrong mapping
	// Meant holds the keys that misspelled ones probably mean: they are not reported as missing.
	Meant map[string]bool
}

// Value returns n as encoding/json would decode it. It reports what does not fit s and leaves it out.
func (c *checker) Value(n *yamltree.Node, s *Shape, p yamltree.Path) (any, bool) {
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
	c.Add(positionOf(n), p, "wants %s, found %s%s", s.Describe(), c.Found(n), advice(n, s))
	return nil, false
}

// positionOf returns the position to report for n: a missing value has only its key.
func positionOf(n *yamltree.Node) yamltree.Position {
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

func (c *checker) mapping(n *yamltree.Node, s *Shape, p yamltree.Path) map[string]any {
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
func (c *checker) complete(n *yamltree.Node, s *Shape, p yamltree.Path) {
	for _, k := range s.Keys {
		if k.Required && n.Field(k.Name) == nil && !c.Meant[p.To(k.Name).String()] {
			c.Add(n.Key, p.To(k.Name), "is missing: %s", strings.TrimSuffix(k.Doc, "."))
		}
	}
	if s.Filled && len(n.Fields) == 0 {
		c.Add(n.Key, p, "is empty: give at least one %s", s.inside())
	}
	there := func(key string) bool { return n.Field(key) != nil || c.Meant[p.To(key).String()] }
	if one, other := s.Exclusive[0], s.Exclusive[1]; one != "" && n.Field(one) != nil && n.Field(other) != nil {
		c.Add(n.Field(other).Key, p.To(other), "cannot be combined with %s: give one of them", one)
	}
	if any := s.AnyOf; any != nil && !slices.ContainsFunc(any, there) {
		last := len(any) - 1
		c.Add(n.Key, p, "wants %s or %s; %s: %s", strings.Join(any[:last], ", "), any[last], any[0], s.Key(any[0]).Doc)
	}
}

// inside describes what a mapping contains, as "of matrix, until".
func (s *Shape) inside() string {
	if s.Free != "" {
		return s.Free + " with its value"
	}
	return "of " + listed(s.Names())
}

// unknown reports a key that s does not have, with the likely meaning and the allowed keys.
func (c *checker) unknown(f yamltree.Field, s *Shape, p yamltree.Path) {
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
		c.Add(f.Value.Key, p, "unknown key%s none is allowed here", endHint(hint))
		return
	}
	c.Add(f.Value.Key, p, "unknown key%s allowed: %s", endHint(hint), listed(s.Names()))
}

// removed reports a key that an override leaves out, and that could not be there.
func (c *checker) removed(p yamltree.Path, at yamltree.Position) {
	s, last := c.Root, p[len(p)-1]
	for _, step := range p[:len(p)-1] {
		s = s.Under(step)
	}
	if s != nil && s.Form == yamltree.Mapping && s.member(last) == nil {
		c.unknown(yamltree.Field{Name: last, Value: &yamltree.Node{Form: yamltree.Nothing, At: at, Key: at}}, s, p)
	}
}

// endHint returns a hint with the punctuation that follows it in an error.
func endHint(hint string) string {
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

func (c *checker) list(n *yamltree.Node, s *Shape, p yamltree.Path) (any, bool) {
	out := make([]any, 0, len(n.Items))
	for i, item := range n.Items {
		if v, ok := c.Value(item, s.Elem, p.To(yamltree.Index(i))); ok {
			out = append(out, v)
		}
	}
	if s.Filled && len(n.Items) == 0 {
		c.Add(n.At, p, "is an empty list: give at least one, or leave the key out")
		return nil, false
	}
	return out, true
}

func (c *checker) text(n *yamltree.Node, s *Shape, p yamltree.Path) (any, bool) {
	if len(s.OneOf) > 0 && !slices.Contains(s.OneOf, n.Text) {
		c.Add(n.At, p, "wants %s, found %s%s", s.Describe(), c.Found(n), text.Suggest(n.Text, s.OneOf))
		return nil, false
	}
	if s.Filled && n.Text == "" {
		c.Add(n.At, p, "is an empty text: give it one, or leave the key out")
		return nil, false
	}
	return n.Text, true
}

// Int checks that a value is a whole number within the bounds of a shape.
func (c *checker) Int(n *yamltree.Node, s *Shape, p yamltree.Path) (any, bool) {
	if i, err := strconv.ParseInt(n.Text, 10, 64); err == nil && i >= s.low && (i < 0 || uint64(i) <= s.high) {
		return json.Number(n.Text), true
	}
	if u, err := strconv.ParseUint(n.Text, 10, 64); err == nil && u <= s.high && (s.low <= 0 || u >= uint64(s.low)) {
		return json.Number(n.Text), true
	}
	c.Add(n.At, p, "wants a whole number, %d to %d, found %s", s.low, s.high, c.Found(n))
	return nil, false
}

func (c *checker) number(n *yamltree.Node, s *Shape, p yamltree.Path) (any, bool) {
	f, err := strconv.ParseFloat(n.Text, 64)
	if err != nil || math.IsInf(f, 0) || math.IsNaN(f) || !s.Holds(f) {
		c.Add(n.At, p, "wants %s, found %s", s.Describe(), c.Found(n))
		return nil, false
	}
	return json.Number(n.Text), true
}

func (c *checker) duration(n *yamltree.Node, s *Shape, p yamltree.Path) (any, bool) {
	d, err := time.ParseDuration(n.Text)
	if err != nil || !s.Holds(float64(d)) {
		c.Add(n.At, p, "wants %s, found %s", s.Describe(), c.Found(n))
		return nil, false
	}
	if s.asText {
		return n.Text, true
	}
	return json.Number(strconv.FormatInt(int64(d), 10)), true
}

// Anything accepts a value that only its reader can check.
func (c *checker) Anything(n *yamltree.Node, p yamltree.Path) (any, bool) {
	switch n.Form {
	case yamltree.Mapping:
		return c.mapping(n, mapShape("NAME", anyShape()), p), true
	case yamltree.List:
		return c.list(n, listShape(anyShape()), p)
	case yamltree.Text:
		return n.Text, true
	case yamltree.Boolean:
		return n.Flag, true
	case yamltree.Integer, yamltree.Number:
		return c.number(n, &Shape{Form: yamltree.Number}, p)
	}
	return nil, true
}

// Complain reports a problem at a key, or at the nearest one that exists. It reports nothing if there
// is an error at that key or below it: the first is more specific.
func (c *checker) Complain(p yamltree.Path, format string, args ...any) {
	if !c.Full() && !c.Reported(p) {
		c.Add(c.Position(p), p, format, args...)
	}
}

// ComplainOfKey reports a problem with a key, not with its value.
func (c *checker) ComplainOfKey(p yamltree.Path, format string, args ...any) {
	if !c.Full() && !c.Reported(p) {
		c.Add(c.Tree.Find(p).Key, p, format, args...)
	}
}

// Position returns where a problem with the value of a key is shown: at the value if it is on one
// line, and at the key otherwise.
func (c *checker) Position(p yamltree.Path) yamltree.Position {
	n := c.Tree.Find(p)
	if n.Form == yamltree.Mapping || n.Form == yamltree.List || n.Form == yamltree.Nothing {
		return n.Key
	}
	return n.At
}

// Where describes the place of a key, as plan.yaml:5:12: providers.lab. If c is nil because the plan has no file, it is the
// key alone.
func (c *checker) Where(p yamltree.Path) string {
	if c == nil {
		return p.String()
	}
	return c.Place(c.Tree.Find(p).At, p)
}

// Reported reports whether there is an error at a key or below it, or the key is missing because it
// was misspelled.
func (c *checker) Reported(p yamltree.Path) bool {
	key := p.String()
	if c.Meant[key] && !c.Tree.Has(p) {
		return true
	}
	return slices.ContainsFunc(c.Errs, func(e *Error) bool {
		return e.Key == key || strings.HasPrefix(e.Key, key+".") || strings.HasPrefix(e.Key, key+"[")
	})
}

// namedParam matches the param that an error of a kind names.
var namedParam = regexp.MustCompile(`^(.*?: )?params\.([^:]+):\s*(.*)`)

// namedAgent matches the agent that an error names.
var namedAgent = regexp.MustCompile(`(?s)^agents\.([^:]+): (.*)`)

// ParamsError returns an error of a kind with the file and line of the param or the agent that it names. If it names none, or c is nil because
// the plan has no file, it returns the error as it is.
func (c *checker) ParamsError(kind string, err error, params yamltree.Path, tried map[string]int) error {
	if c == nil || err == nil {
		return err
	}
	own := &checker{report: &report{Source: c.Source}, Tree: c.Tree}
	if m := namedAgent.FindStringSubmatch(err.Error()); m != nil {
		own.Complain(yamltree.Path{"agents", m[1]}, "%s", m[2])
		return own.Err()
	}
	if !namedParam.MatchString(err.Error()) {
		return err
	}
	own.ComplainOfParams(kind, err, params, tried)
	return own.Err()
}

// ComplainOfParams reports an error of a kind about params, each line at the param that it names. params is where they are. tried
// has the params that a matrix varies, with the indexes of their values.
func (c *checker) ComplainOfParams(kind string, err error, params yamltree.Path, tried map[string]int) {
	for line := range strings.Lines(err.Error()) {
		line = strings.TrimPrefix(strings.TrimPrefix(strings.TrimSpace(line), kind+": "), "params: ")
		here := params
		if m := namedParam.FindStringSubmatch(line); m != nil {
			named, rest := m[2], m[3]
			line = m[1] + rest
			here = c.Param(named, rest, params, tried)
		}
		if line != "" {
			c.Complain(here, "%s", oneLine(line, 500))
		}
	}
}

// Param returns where the plan has the param that a problem is about. params and tried are as those of ComplainOfParams.
func (c *checker) Param(named, problem string, params yamltree.Path, tried map[string]int) yamltree.Path {
	if here := c.tried(tried, named, problem); here != nil {
		return here
	}
	steps := c.Tree.Find(params).Steps(named)
	if c.Tree.Find(params).Field(steps[0]) == nil {
		params = yamltree.Path{"params"} // the matrix does not vary it
	}
	return append(slices.Clone(params), steps...)
}

// tried returns where the matrix has the value that a problem is about: of the param that it names, of one that holds that, or of
// one such as set.turns whose problem begins with the rest of its name. It is nil if the matrix does not vary it.
func (c *checker) tried(tried map[string]int, named, problem string) yamltree.Path {
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(tried))) { // pool.warm before pool: it is applied later
		here := yamltree.Path{"plan", "matrix", "params", name, yamltree.Index(tried[name])}
		head, rest, dotted := strings.Cut(name, ".")
		switch inner, within := strings.CutPrefix(named, name+"."); {
		case within:
			return append(here, c.Tree.Find(here).Steps(inner)...)
		case name == named, dotted && head == named && strings.HasPrefix(problem, rest+": "):
			return here
		}
	}
	return nil
}

// listed lists names for an error, up to a readable number.
func listed(names []string) string {
	const limit = 30
	if len(names) > limit {
		return strings.Join(names[:limit], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}

// remarshal converts a Checker's values to a Go value.
func remarshal(from, to any) error {
	b, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return unmarshal(b, to)
}

// unmarshal decodes JSON and keeps numbers as written.
func unmarshal(b []byte, to any) error {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	return dec.Decode(to)
}
