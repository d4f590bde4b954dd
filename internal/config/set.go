package config

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// override applies one a.b=c to the tree. table is the shape of a plan; with it, a text that stands
// for a mapping can be expanded: quiet: sim/small.
func override(rep *report, root *node, table *shape, set string) {
	rep.src.conceal(secretsIn(set))
	rep.src.conceal(secretsGuessed(set))
	left, right, ok := cutSet(set)
	at := place{set: "--set " + oneLine(rep.src.hide(set), 80)}
	p, err := splitPath(left)
	if !ok || err != nil {
		rep.add(at, nil, "is not KEY=VALUE, as agents.quiet.temperature=0.7%s", because(err))
		return
	}
	if last := p[len(p)-1]; secretName(last) && !(envName(last) && isEnv(right)) {
		rep.src.conceal([]string{right})
		at.set = rep.src.hide(at.set)
	}
	parent := root
	for i, step := range p[:len(p)-1] {
		parent = open(parent, at, step, table)
		table = table.under(step)
		if parent == nil {
			rep.add(at, p[:i+1], "is not a mapping: set it as a whole, with %s=…", p[:i+1])
			return
		}
	}
	last := p[len(p)-1]
	if parent.expand(table); parent.form != mapping {
		rep.add(at, p[:len(p)-1], "is not a mapping: set it as a whole, with %s=…", p[:len(p)-1])
		return
	}
	if strings.TrimSpace(right) == "" {
		parent.fields = slices.DeleteFunc(parent.fields, func(f field) bool { return f.name == last })
		return
	}
	if s := table.under(last); s != nil && s.form == text {
		parent.put(last, overrideText(right, at))
	} else if value := overrideValue(rep, right, at, p); value != nil {
		parent.put(last, value)
	}
}

// overrideText reads the right side as a text: unchanged, so that quotes within quotes are not needed,
// unless it is a text in YAML quotes.
func overrideText(right string, at place) *node {
	n := &node{form: text, text: right, at: at, key: at}
	if strings.HasPrefix(right, `"`) || strings.HasPrefix(right, "'") {
		if value := parse(newSource("", []byte(right))); value != nil && value.form == text {
			n.text = value.text
		}
	}
	return n
}

// overrideValue reads the right side of an override.
func overrideValue(rep *report, right string, at place, p path) *node {
	inner := newSource(at.set, []byte(right))
	var value *node
	if len(inner.errs) == 0 {
		value = parse(inner)
	}
	for _, e := range inner.errs {
		rep.add(at, p, "%s", e.Problem)
	}
	if len(inner.errs) > 0 || value == nil {
		return nil
	}
	value.move(at)
	rep.src.conceal(inner.src.secrets)
	return value
}

// move sets the position of n and of everything under it.
func (n *node) move(to place) {
	n.at, n.key = to, to
	for _, f := range n.fields {
		f.value.move(to)
	}
	for _, item := range n.items {
		item.move(to)
	}
}

// overridden reports whether an override changed anything at or under n.
func (n *node) overridden() bool {
	if n == nil {
		return false
	}
	return n.at.set != "" || slices.ContainsFunc(n.items, (*node).overridden) ||
		slices.ContainsFunc(n.fields, func(f field) bool { return f.value.overridden() })
}

// open returns the mapping under step of n. It makes one if there is none, and returns nil if n or
// the value under step is not a mapping.
func open(n *node, at place, step string, table *shape) *node {
	n.expand(table)
	if n.form != mapping {
		return nil
	}
	inner := n.field(step)
	if inner == nil || inner.form == nothing {
		inner = &node{form: mapping, at: at, key: at}
		n.put(step, inner)
	}
	inner.expand(table.under(step))
	if inner.form != mapping {
		return nil
	}
	return inner
}

// expand turns a text that stands for a mapping into the mapping.
func (n *node) expand(s *shape) {
	if n.form == text && s != nil && s.short != "" {
		model := *n
		*n = node{form: mapping, at: n.at, key: n.key, fields: []field{{s.short, &model}}}
	}
}

// put sets a key of a mapping.
func (n *node) put(name string, value *node) {
	for i, f := range n.fields {
		if f.name == name {
			n.fields[i].value = value
			return
		}
	}
	n.fields = append(n.fields, field{name, value})
}

// under returns the shape of the value under a key, or nil if it is not known.
func (s *shape) under(name string) *shape {
	if s == nil {
		return nil
	}
	if k := s.key(name); k != nil {
		return k.shape
	}
	return s.elem
}

// cutSet splits at the first = that is not in quotes.
func cutSet(set string) (left, right string, ok bool) {
	quoted := false
	for i, r := range set {
		switch {
		case r == '"':
			quoted = !quoted
		case r == '=' && !quoted:
			return set[:i], set[i+1:], true
		}
	}
	return set, "", false
}

// splitPath splits agents."gpt-4.1".seed at its dots.
func splitPath(s string) (path, error) {
	var p path
	var step strings.Builder
	quoted := false
	end := func() error {
		if strings.TrimSpace(step.String()) == "" {
			return fmt.Errorf("a part of the key is empty")
		}
		p = append(p, strings.TrimSpace(step.String()))
		step.Reset()
		return nil
	}
	for _, r := range s {
		switch {
		case r == '"':
			quoted = !quoted
		case r == '.' && !quoted:
			if err := end(); err != nil {
				return nil, err
			}
		default:
			step.WriteRune(r)
		}
	}
	if quoted {
		return nil, fmt.Errorf("a quote is not closed")
	}
	if err := end(); err != nil {
		return nil, err
	}
	if len(p) > maxDepth {
		return nil, fmt.Errorf("the key has more than %d parts", maxDepth)
	}
	return p, nil
}

// oneLine puts a text on one line and cuts it to a length.
func oneLine(s string, most int) string {
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s)
	if runes := []rune(s); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return s
}

func because(err error) string {
	if err == nil {
		return ""
	}
	return ": " + err.Error()
}
