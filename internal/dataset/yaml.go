package dataset

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/goccy/go-yaml/ast"

	"parley/internal/files"
)

// The bounds of a YAML dataset, which cannot be read in parts. A larger one is written as
// JSON lines.
const (
	maxYAML   = 8 << 20
	maxTokens = 500_000
	maxDepth  = 100
)

// fromYAML reads a list of rows.
func fromYAML(ctx context.Context, r io.Reader, l limits, take taker) error {
	text, err := files.ReadAll(ctx, r, "", maxYAML)
	if _, ok := errors.AsType[*files.TooLargeError](err); ok {
		return fmt.Errorf("is larger than %s: write a dataset of this size as JSON lines", files.Size(maxYAML))
	}
	if err != nil {
		return err
	}
	parsed, err := files.ParseYAML(string(text), files.Limits{Tokens: maxTokens, Depth: maxDepth})
	if err != nil {
		return err
	}
	var docs []ast.Node
	for _, d := range parsed.Docs {
		if d.Body != nil {
			docs = append(docs, d.Body)
		}
	}
	if len(docs) == 0 {
		return nil
	}
	w := &yamlWriter{most: l.row, steps: 4 * maxTokens, anchors: map[string]ast.Node{}, open: map[string]bool{}}
	list, ok := w.target(docs[0]).(*ast.SequenceNode)
	if !ok || len(docs) > 1 {
		return errors.New("want one list of rows")
	}
	for i, item := range list.Values {
		w.out = nil
		if err := w.value(item, 0); err != nil {
			return fmt.Errorf("row %d: %w", i+1, err)
		}
		if err := take(json.RawMessage(w.out)); err != nil {
			return err
		}
	}
	return nil
}

// yamlWriter writes values of a YAML file as JSON. It follows aliases, and counts: few
// aliases of aliases are values without end.
type yamlWriter struct {
	out     []byte
	most    int // bytes of out
	steps   int // values that may still be looked at
	anchors map[string]ast.Node
	open    map[string]bool // anchors being followed
}

var errYAMLRow = errors.New("is too large when its aliases (*) are followed")

func (w *yamlWriter) put(text string) error {
	if len(w.out)+len(text) > w.most {
		return errYAMLRow
	}
	w.out = append(w.out, text...)
	return nil
}

// step counts a value.
func (w *yamlWriter) step(depth int) error {
	if w.steps--; w.steps < 0 {
		return errYAMLRow
	}
	if depth > maxDepth {
		return fmt.Errorf("is nested too deeply: at most %d levels", maxDepth)
	}
	return nil
}

// target is what an anchor marks.
func (w *yamlWriter) target(n ast.Node) ast.Node {
	if a, ok := n.(*ast.AnchorNode); ok {
		w.anchors[nameOf(a.Name)] = a.Value
		return a.Value
	}
	return n
}

func (w *yamlWriter) value(n ast.Node, depth int) error {
	if err := w.step(depth); err != nil {
		return err
	}
	switch n := n.(type) {
	case nil, *ast.NullNode:
		return w.put("null")
	case *ast.AnchorNode:
		w.anchors[nameOf(n.Name)] = n.Value
		return w.within(nameOf(n.Name), func() error { return w.value(n.Value, depth+1) })
	case *ast.AliasNode:
		target, err := w.follow(n)
		if err != nil {
			return err
		}
		return w.within(nameOf(n.Value), func() error { return w.value(target, depth+1) })
	case *ast.TagNode:
		return w.tagged(n, depth)
	case *ast.SequenceNode:
		return w.list(n.Values, depth)
	case *ast.MappingNode, *ast.MappingValueNode:
		return w.mapping(n, depth)
	default:
		return w.scalar(n)
	}
}

// follow finds what an alias stands for.
func (w *yamlWriter) follow(n *ast.AliasNode) (ast.Node, error) {
	name := nameOf(n.Value)
	target, ok := w.anchors[name]
	switch {
	case !ok:
		return nil, fmt.Errorf("*%s refers to nothing: there is no &%s before it", name, name)
	case w.open[name]:
		return nil, fmt.Errorf("*%s is inside &%s itself", name, name)
	}
	return target, nil
}

// within does what must not come to the same anchor again.
func (w *yamlWriter) within(name string, do func() error) error {
	was := w.open[name]
	w.open[name] = true
	err := do()
	w.open[name] = was
	return err
}

// tagged writes a value with a tag: that it is a text changes it, other types it shows
// itself.
func (w *yamlWriter) tagged(n *ast.TagNode, depth int) error {
	switch tag := n.GetToken().Value; tag {
	case "!!str":
		if n.Value != nil && n.Value.GetToken() != nil {
			if text, ok := n.Value.(*ast.LiteralNode); ok && text.Value != nil {
				return w.text(text.Value.Value)
			}
			return w.text(n.Value.GetToken().Value)
		}
		return w.text("")
	case "!!int", "!!float", "!!bool", "!!null", "!!map", "!!seq":
		return w.value(n.Value, depth+1)
	default:
		return fmt.Errorf("tags such as %.40q are not read: leave it out", tag)
	}
}

func (w *yamlWriter) list(items []ast.Node, depth int) error {
	if err := w.put("["); err != nil {
		return err
	}
	for i, item := range items {
		if i > 0 {
			if err := w.put(","); err != nil {
				return err
			}
		}
		if err := w.value(item, depth+1); err != nil {
			return err
		}
	}
	return w.put("]")
}

func (w *yamlWriter) scalar(n ast.Node) error {
	switch n := n.(type) {
	case *ast.BoolNode:
		return w.put(strconv.FormatBool(n.Value))
	case *ast.IntegerNode:
		return w.put(fmt.Sprint(n.Value))
	case *ast.FloatNode:
		if math.IsInf(n.Value, 0) || math.IsNaN(n.Value) {
			return fmt.Errorf("%s is not a number that JSON can hold: put it in quotes", n.GetToken().Value)
		}
		b, err := json.Marshal(n.Value)
		if err != nil {
			return err
		}
		return w.put(string(b))
	case *ast.StringNode:
		return w.text(n.Value)
	case *ast.LiteralNode:
		if n.Value == nil {
			return w.text("")
		}
		return w.text(n.Value.Value)
	default:
		return fmt.Errorf("%.40q is not allowed here", n.GetToken().Value)
	}
}

func (w *yamlWriter) text(s string) error {
	if len(w.out)+len(s) > w.most {
		return errYAMLRow
	}
	b, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return w.put(string(b))
}

// nameOf returns the name of an anchor or alias.
func nameOf(n ast.Node) string {
	if n == nil || n.GetToken() == nil {
		return ""
	}
	return n.GetToken().Value
}
