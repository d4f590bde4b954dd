package planfile

import (
	"fmt"
	"slices"
	"strings"

	"parley/internal/kit/yamltree"
)

// override applies one a.b=c of a flag to the tree. table is the shape of a plan; with it, a text that stands
// for a mapping can be expanded: quiet: sim/small. A key without a value is left out, and returned.
func override(rep *report, root *yamltree.Node, table *Shape, flag, set string) (left yamltree.Path, at yamltree.Position) {
	rep.Source.Conceal(secretsIn(set))
	rep.Source.Conceal(secretsGuessed(set))
	key, right, ok := cutSet(set)
	at = yamltree.Position{Set: flag + " " + oneLine(rep.Source.Hide(set), 80)}
	p, err := splitPath(key)
	if !ok || err != nil {
		rep.Add(at, nil, "is not KEY=VALUE, as agents.quiet.temperature=0.7%s", because(err))
		return nil, at
	}
	if last := p[len(p)-1]; secretName(last) && !(envName(last) && isEnv(right)) {
		rep.Source.Conceal([]string{right})
		at.Set = rep.Source.Hide(at.Set)
	}
	parent := root
	for i, step := range p[:len(p)-1] {
		parent = openMapping(parent, at, step, table)
		table = table.Under(step)
		if parent == nil {
			rep.Add(at, p[:i+1], "is not a mapping: set it as a whole, with %s=…", p[:i+1])
			return nil, at
		}
	}
	last := p[len(p)-1]
	if expand(parent, table); parent.Form != yamltree.Mapping {
		rep.Add(at, p[:len(p)-1], "is not a mapping: set it as a whole, with %s=…", p[:len(p)-1])
		return nil, at
	}
	if strings.TrimSpace(right) == "" {
		parent.Fields = slices.DeleteFunc(parent.Fields, func(f yamltree.Field) bool { return f.Name == last })
		return p, at
	}
	if s := table.Under(last); s != nil && s.Form == yamltree.Text {
		parent.Put(last, overrideText(right, at))
	} else if value := overrideValue(rep, right, at, p); value != nil {
		parent.Put(last, value)
	}
	return nil, at
}

// overrideText reads the right side as a text: unchanged, so that quotes within quotes are not needed,
// unless it is a text in YAML quotes.
func overrideText(right string, at yamltree.Position) *yamltree.Node {
	n := &yamltree.Node{Form: yamltree.Text, Text: right, At: at, Key: at}
	if strings.HasPrefix(right, `"`) || strings.HasPrefix(right, "'") {
		if value := parseYAML(newPlanReport("", []byte(right))); value != nil && value.Form == yamltree.Text {
			n.Text = value.Text
		}
	}
	return n
}

// overrideValue reads the right side of an override.
func overrideValue(rep *report, right string, at yamltree.Position, p yamltree.Path) *yamltree.Node {
	inner := newPlanReport(at.Set, []byte(right))
	var value *yamltree.Node
	if len(inner.Errs) == 0 {
		value = parseYAML(inner)
	}
	for _, e := range inner.Errs {
		rep.Add(at, p, "%s", e.Problem)
	}
	if len(inner.Errs) > 0 || value == nil {
		return nil
	}
	value.Move(at)
	rep.Source.Conceal(inner.Source.Secrets)
	return value
}

// openMapping returns the mapping under step of n. It makes a missing one, and returns nil if n or
// the value under step is not a mapping.
func openMapping(n *yamltree.Node, at yamltree.Position, step string, table *Shape) *yamltree.Node {
	expand(n, table)
	if n.Form != yamltree.Mapping {
		return nil
	}
	inner := n.Field(step)
	if inner == nil || inner.Form == yamltree.Nothing {
		inner = &yamltree.Node{Form: yamltree.Mapping, At: at, Key: at}
		n.Put(step, inner)
	}
	expand(inner, table.Under(step))
	if inner.Form != yamltree.Mapping {
		return nil
	}
	return inner
}

// expand turns a text that stands for a mapping into the mapping.
func expand(n *yamltree.Node, s *Shape) {
	if n.Form == yamltree.Text && s != nil && s.Shorthand != "" {
		model := *n
		*n = yamltree.Node{Form: yamltree.Mapping, At: n.At, Key: n.Key, Fields: []yamltree.Field{{Name: s.Shorthand, Value: &model}}}
	}
}

// Under returns the shape of the value under a key, or nil if it is not known.
func (s *Shape) Under(name string) *Shape {
	if s == nil {
		return nil
	}
	if k := s.Key(name); k != nil {
		return k.Shape
	}
	return s.Elem
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
func splitPath(s string) (yamltree.Path, error) {
	var p yamltree.Path
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
	if len(p) > yamltree.MaxDepth {
		return nil, fmt.Errorf("the key has more than %d parts", yamltree.MaxDepth)
	}
	return p, nil
}

func because(err error) string {
	if err == nil {
		return ""
	}
	return ": " + err.Error()
}
