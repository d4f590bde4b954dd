package dataset

import (
	"errors"
	"fmt"

	"github.com/goccy/go-yaml/ast"
)

// yamlField is a key of a mapping and its value.
type yamlField struct {
	name  string
	value ast.Node
}

// mapping writes an object. A key that a merge (<<) brings gives way to one that is written.
func (w *yamlWriter) mapping(n ast.Node, depth int) error {
	fields, err := w.fields(n, depth)
	if err != nil {
		return err
	}
	if err := w.put("{"); err != nil {
		return err
	}
	for i, f := range fields {
		if i > 0 {
			if err := w.put(","); err != nil {
				return err
			}
		}
		if err := w.text(f.name); err != nil {
			return err
		}
		if err := w.put(":"); err != nil {
			return err
		}
		if err := w.value(f.value, depth+1); err != nil {
			return fmt.Errorf("%.40s: %w", f.name, err)
		}
	}
	return w.put("}")
}

// fields lists the keys of a mapping, each once, in their order: those that are written,
// then those that merges bring.
func (w *yamlWriter) fields(n ast.Node, depth int) ([]yamlField, error) {
	values := []*ast.MappingValueNode{}
	switch n := n.(type) {
	case *ast.MappingNode:
		values = n.Values
	case *ast.MappingValueNode:
		values = append(values, n)
	}
	var own, merged []yamlField
	has := map[string]bool{}
	for _, v := range values {
		if err := w.step(depth); err != nil {
			return nil, err
		}
		if v.Key.IsMergeKey() {
			more, err := w.merged(v.Value, depth+1)
			if err != nil {
				return nil, err
			}
			merged = append(merged, more...)
			continue
		}
		name, err := w.key(v.Key)
		if err != nil {
			return nil, err
		}
		if has[name] {
			return nil, fmt.Errorf("%.40q is given twice", name)
		}
		has[name] = true
		own = append(own, yamlField{name, v.Value})
	}
	for _, f := range merged {
		if !has[f.name] {
			has[f.name] = true
			own = append(own, f)
		}
	}
	return own, nil
}

// merged lists what a << brings, earlier ones first.
func (w *yamlWriter) merged(n ast.Node, depth int) (all []yamlField, err error) {
	if err := w.step(depth); err != nil {
		return nil, err
	}
	switch n := n.(type) {
	case *ast.AnchorNode:
		w.anchors[nameOf(n.Name)] = n.Value
		return w.merged(n.Value, depth+1)
	case *ast.AliasNode:
		target, err := w.follow(n)
		if err != nil {
			return nil, err
		}
		err = w.within(nameOf(n.Value), func() error {
			all, err = w.merged(target, depth+1)
			return err
		})
		return all, err
	case *ast.SequenceNode:
		for _, item := range n.Values {
			more, err := w.merged(item, depth+1)
			if err != nil {
				return nil, err
			}
			all = append(all, more...)
		}
		return all, nil
	case *ast.MappingNode, *ast.MappingValueNode:
		return w.fields(n, depth+1)
	default:
		return nil, errors.New("<< takes a mapping, or a list of them")
	}
}

// key returns what a key is called. Numbers and the like are taken as they are written.
func (w *yamlWriter) key(k ast.MapKeyNode) (string, error) {
	var n ast.Node = k
	for range maxDepth {
		switch inner := n.(type) {
		case *ast.AnchorNode:
			w.anchors[nameOf(inner.Name)] = inner.Value
			n = inner.Value
		case *ast.MappingKeyNode:
			n = inner.Value
		case *ast.StringNode:
			return inner.Value, nil
		case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.NullNode, *ast.InfinityNode, *ast.NanNode:
			return inner.GetToken().Value, nil
		default:
			return "", errors.New("a key must be a word")
		}
	}
	return "", errors.New("a key must be a word")
}
