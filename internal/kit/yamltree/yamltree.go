// Package yamltree holds YAML and JSON documents as trees whose nodes know their positions, with aliases and merges
// followed.
//
// What it promises: building a tree stays within limits, however aliases multiply, and reports every problem with its
// position.
//
// It does not parse YAML (package files does) and does not know what a document may contain.
package yamltree

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/goccy/go-yaml/ast"

	"parley/internal/kit/text"
)

// MaxDepth limits how deep a value may be nested.
const MaxDepth = 40

// Form is the type of a value.
type Form int

// The forms of values.
const (
	Nothing Form = iota
	Broken       // an error was reported
	Boolean
	Integer
	Number
	Text
	List
	Mapping
	Duration // only in shapes
	Anything // only in shapes
)

// Node is a value of a plan from YAML, an override, or a recorded plan.
type Node struct {
	Form   Form
	At     Position // of the value
	Key    Position // of its key; at the root, of the value
	Text   string
	Flag   bool
	Scalar ast.Node // the parser's node of a single value; nil if it is not from YAML
	Anchor bool     // marked with &
	Items  []*Node
	Fields []Field
}

// Field is a key of a mapping and its value.
type Field struct {
	Name  string
	Value *Node
}

// Field returns the value under name, or nil.
func (n *Node) Field(name string) *Node {
	if n == nil {
		return nil
	}
	for _, f := range n.Fields {
		if f.Name == name {
			return f.Value
		}
	}
	return nil
}

// Has reports whether there is a node at p.
func (n *Node) Has(p Path) bool {
	return len(p) == 0 || n.Find(p) != n.Find(p[:len(p)-1])
}

// Find returns the node at p, or the last one on the way if p does not exist.
func (n *Node) Find(p Path) *Node {
	for _, step := range p {
		next := n.Field(step)
		if inner, ok := strings.CutPrefix(step, "["); ok && next == nil {
			if i, err := strconv.Atoi(strings.TrimSuffix(inner, "]")); err == nil && i < len(n.Items) {
				next = n.Items[i]
			}
		}
		if next == nil {
			return n
		}
		n = next
	}
	return n
}

// Steps splits the path of a value below n. A key that exists may contain dots.
func (n *Node) Steps(name string) (out Path) {
	rest := KeyPath(name)
	for len(rest) > 0 {
		k := len(rest)
		for k > 1 && n.Field(strings.Join(rest[:k], ".")) == nil {
			k--
		}
		step := strings.Join(rest[:k], ".")
		out, rest, n = append(out, step), rest[k:], n.Find(Path{step})
	}
	return out
}

// Move sets the position of n and of everything under it.
func (n *Node) Move(to Position) {
	n.At, n.Key = to, to
	for _, f := range n.Fields {
		f.Value.Move(to)
	}
	for _, item := range n.Items {
		item.Move(to)
	}
}

// Overridden reports whether an override changed anything at or under n.
func (n *Node) Overridden() bool {
	if n == nil {
		return false
	}
	return n.At.Set != "" || slices.ContainsFunc(n.Items, (*Node).Overridden) ||
		slices.ContainsFunc(n.Fields, func(f Field) bool { return f.Value.Overridden() })
}

// Put sets a key of a mapping.
func (n *Node) Put(name string, value *Node) {
	for i, f := range n.Fields {
		if f.Name == name {
			n.Fields[i].Value = value
			return
		}
	}
	n.Fields = append(n.Fields, Field{name, value})
}

// Describe describes a value for an error, as `the text "ten"`. quote quotes texts.
func (n *Node) Describe(quote func(string) string) string {
	switch n.Form {
	case Nothing:
		return "nothing"
	case Boolean:
		return n.Text
	case Integer, Number:
		return "the number " + strings.Trim(quote(n.Text), `"`)
	case Text:
		return "the text " + quote(n.Text)
	case List:
		return "a list"
	}
	return "a mapping"
}

// Position is a position in the file, or an override.
type Position struct {
	Set          string // the override, as --set a.b=c
	Line, Column int
}

// Path names a key of a plan: agents, bold, stop, [0].
type Path []string

// To returns p with one more step. It does not change p.
func (p Path) To(step string) Path { return append(slices.Clone(p), step) }

// String writes agents.bold.stop[0]. A step that is not a plain word is quoted.
func (p Path) String() string {
	var b strings.Builder
	for i, step := range p {
		switch index := strings.HasPrefix(step, "["); {
		case index:
		case i > 0:
			b.WriteByte('.')
		}
		if plainStep(step) {
			b.WriteString(step)
		} else {
			b.WriteString(Quote(step))
		}
	}
	return b.String()
}

func plainStep(step string) bool {
	return step != "" && !strings.ContainsFunc(step, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_-[]/*", r)
	})
}

// Quote quotes a text from outside, on one line, cut to a length.
func Quote(s string) string {
	return strconv.Quote(text.Excerpt(s, 60))
}

var keyStep = regexp.MustCompile(`[^.\[\]]+|\[\d+\]`)

// KeyPath parses a path of plain words, as path.String writes it.
func KeyPath(key string) Path { return keyStep.FindAllString(key, -1) }

// Index returns the step of a path to an element of a list.
func Index(i int) string { return fmt.Sprintf("[%d]", i) }

// ParseJSON reads one JSON value into a tree without positions.
func ParseJSON(b []byte) (*Node, error) {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	return jsonNode(dec, 0)
}

func jsonNode(dec *json.Decoder, depth int) (*Node, error) {
	t, err := dec.Token()
	if err != nil {
		return nil, err
	}
	if depth > MaxDepth {
		return nil, errors.New("it is nested too deeply")
	}
	switch t := t.(type) {
	case json.Delim:
		return jsonNested(dec, t, depth)
	case string:
		return &Node{Form: Text, Text: t}, nil
	case bool:
		return &Node{Form: Boolean, Flag: t, Text: fmt.Sprint(t)}, nil
	case json.Number:
		n := &Node{}
		n.decimal(t.String())
		return n, nil
	}
	return &Node{}, nil
}

func jsonNested(dec *json.Decoder, open json.Delim, depth int) (*Node, error) {
	n := &Node{Form: List}
	if open == '{' {
		n.Form = Mapping
	}
	for dec.More() {
		var name string
		if n.Form == Mapping {
			t, err := dec.Token()
			if err != nil {
				return nil, err
			}
			name, _ = t.(string)
			if n.Field(name) != nil {
				return nil, fmt.Errorf("it holds %s twice", Quote(name))
			}
		}
		value, err := jsonNode(dec, depth+1)
		if err != nil {
			return nil, err
		}
		if n.Form == Mapping {
			n.Fields = append(n.Fields, Field{name, value})
		} else {
			n.Items = append(n.Items, value)
		}
	}
	_, err := dec.Token() // the closing one
	return n, err
}
