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

	"parley/internal/kit/files"
	"parley/internal/kit/yamltree"
)

// The limits of a YAML dataset, which cannot be read in parts. Write a larger one as JSON lines.
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
	parsed, err := files.ParseYAML(string(text), files.YAMLLimits{Tokens: maxTokens, Depth: maxDepth})
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
	var problem error // the first of a row
	b := yamltree.NewBuilder(yamltree.Limits{Nodes: 4 * maxTokens, Bytes: l.row, Depth: maxDepth}, func(at yamltree.Position, _ yamltree.Path, format string, args ...any) {
		if problem == nil {
			problem = fmt.Errorf("line %d: %w", at.Line, fmt.Errorf(format, args...))
		}
	}, yamltree.Quote)
	b.Tags = true
	list, ok := b.Target(docs[0]).(*ast.SequenceNode)
	if !ok || len(docs) > 1 {
		return errors.New("want one list of rows")
	}
	for i, item := range list.Values {
		n := b.Build(item)
		w := &rowWriter{limit: l.row}
		if err = problem; err == nil {
			err = w.value(n)
		}
		if err != nil {
			return fmt.Errorf("row %d: %w", i+1, err)
		}
		if err := take(json.RawMessage(w.out)); err != nil {
			return err
		}
	}
	return nil
}

// rowWriter writes a value of a YAML file as JSON.
type rowWriter struct {
	out   []byte
	limit int // bytes of out
}

func (w *rowWriter) put(text string) error {
	if len(w.out)+len(text) > w.limit {
		return errors.New("is too large when its aliases (*) are followed")
	}
	w.out = append(w.out, text...)
	return nil
}

func (w *rowWriter) value(n *yamltree.Node) error {
	switch n.Form {
	case yamltree.List:
		for i, item := range n.Items {
			if err := errors.Join(w.put("[,"[min(i, 1):][:1]), w.value(item)); err != nil {
				return err
			}
		}
		return w.put("[]"[min(len(n.Items), 1):])
	case yamltree.Mapping:
		for i, f := range n.Fields {
			if err := errors.Join(w.put("{,"[min(i, 1):][:1]), w.text(f.Name), w.put(":")); err != nil {
				return err
			}
			if err := w.value(f.Value); err != nil {
				return fmt.Errorf("%.40s: %w", f.Name, err)
			}
		}
		return w.put("{}"[min(len(n.Fields), 1):])
	case yamltree.Nothing:
		return w.put("null")
	default:
		return w.scalar(n)
	}
}

// scalar writes a single value. Unlike in a plan, only YAML's own numbers are numbers.
func (w *rowWriter) scalar(n *yamltree.Node) error {
	switch s := n.Scalar.(type) {
	case *ast.BoolNode:
		return w.put(strconv.FormatBool(s.Value))
	case *ast.IntegerNode:
		return w.put(fmt.Sprint(s.Value))
	case *ast.FloatNode:
		if math.IsInf(s.Value, 0) || math.IsNaN(s.Value) {
			return fmt.Errorf("%s is not a number that JSON can hold: put it in quotes", s.GetToken().Value)
		}
		b, err := json.Marshal(s.Value)
		return errors.Join(err, w.put(string(b)))
	case *ast.StringNode:
		return w.text(s.Value)
	case *ast.InfinityNode, *ast.NanNode:
		return fmt.Errorf("%.40q is not a number that JSON can hold: put it in quotes", s.GetToken().Value)
	default:
		return w.text(n.Text)
	}
}

func (w *rowWriter) text(s string) error {
	if len(w.out)+len(s) > w.limit {
		return w.put(s)
	}
	b, err := json.Marshal(s)
	return errors.Join(err, w.put(string(b)))
}
