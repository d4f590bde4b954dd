package yamltree

import (
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"parley/internal/kit/files"
)

// Limits bound a tree after its aliases have been followed.
type Limits struct {
	Nodes, Bytes, Depth int
}

// Builder turns the parser's tree into nodes. It follows aliases and merges (<<), within limits.
type Builder struct {
	// Tags accepts YAML's own tags, such as !!str.
	Tags bool
	// Over means that a limit was exceeded, and so reported: the tree is incomplete.
	Over bool

	limits  Limits
	report  func(at Position, p Path, format string, args ...any)
	quote   func(string) string
	anchors map[string]ast.Node
	open    map[string]bool // anchors being followed
	count   int             // of nodes
	bytes   int             // of texts, and at least as many as their JSON needs
	path    []step          // of the node being built
}

// NewBuilder returns a builder that reports problems, quoting texts with quote.
func NewBuilder(l Limits, report func(at Position, p Path, format string, args ...any), quote func(string) string) *Builder {
	return &Builder{limits: l, report: report, quote: quote, anchors: map[string]ast.Node{}, open: map[string]bool{}}
}

// Target returns the value of n, which may be marked with an anchor.
func (b *Builder) Target(n ast.Node) ast.Node {
	if a, ok := n.(*ast.AnchorNode); ok {
		b.anchors[nameOf(a.Name)] = a.Value
		return a.Value
	}
	return n
}

// Build returns the tree of n. Limits.Bytes counts for each tree, and Limits.Nodes for all of them.
func (b *Builder) Build(n ast.Node) *Node {
	b.bytes = 0
	return b.build(n, 0)
}

// step is a key of a mapping or, without a name, an index of a list. Building a Path for every node takes too much memory.
type step struct {
	name  string
	index int
	item  bool
}

// at builds n one step further.
func (b *Builder) at(to step, n ast.Node, depth int) *Node {
	b.path = append(b.path, to)
	out := b.build(n, depth+1)
	b.path = b.path[:len(b.path)-1]
	return out
}

// fail reports a problem at the current path or, with a key, at that key below it.
func (b *Builder) fail(at Position, key, format string, args ...any) {
	var p Path
	for _, s := range b.path {
		if s.item {
			s.name = Index(s.index)
		}
		p = append(p, s.name)
	}
	if key != "" {
		p = append(p, key)
	}
	b.report(at, p, format, args...)
}

// build returns the node of n. It is never nil.
func (b *Builder) build(n ast.Node, depth int) *Node {
	out := &Node{}
	if n == nil {
		return out
	}
	out.At = PositionOf(n.GetToken())
	out.Key = out.At
	b.count++
	b.bytes += 2
	if b.Over || b.count > b.limits.Nodes || b.bytes > b.limits.Bytes || depth > b.limits.Depth {
		b.stop(out.At, depth)
		return out
	}
	switch n := n.(type) {
	case *ast.MappingNode:
		b.mapping(out, n, depth)
	case *ast.MappingValueNode:
		b.mapping(out, &ast.MappingNode{Values: []*ast.MappingValueNode{n}}, depth)
	case *ast.SequenceNode:
		out.Form = List
		for i, item := range n.Values {
			out.Items = append(out.Items, b.at(step{index: i, item: true}, item, depth))
		}
	case *ast.AnchorNode:
		b.anchors[nameOf(n.Name)] = n.Value
		marked := b.follow(nameOf(n.Name), n.Value, depth)
		marked.Anchor = true
		return marked
	case *ast.AliasNode:
		return b.alias(out, n, depth)
	case *ast.TagNode:
		return b.tagged(out, n, depth)
	default:
		b.scalar(out, n)
		b.bytes += len(out.Text)
	}
	return out
}

// stop reports the exceeded limit, once.
func (b *Builder) stop(at Position, depth int) {
	if b.Over {
		return
	}
	b.Over = true
	switch {
	case depth > b.limits.Depth:
		b.report(at, nil, "is nested too deeply: at most %d levels", b.limits.Depth)
	case b.bytes > b.limits.Bytes:
		b.report(at, nil, "is too large: its texts are more than %s when its aliases (*) are followed", files.Size(int64(b.limits.Bytes)))
	default:
		b.report(at, nil, "is too large: more than %d values when its aliases (*) are followed", b.limits.Nodes)
	}
}

func (b *Builder) alias(out *Node, n *ast.AliasNode, depth int) *Node {
	name := nameOf(n.Value)
	out.Form = Broken // unless it can be followed
	target, known := b.anchors[name]
	switch {
	case !known:
		b.fail(out.At, "", "*%s refers to nothing: there is no &%s before it", name, name)
		return out
	case b.open[name]:
		b.fail(out.At, "", "*%s is inside &%s itself", name, name)
		return out
	}
	return b.follow(name, target, depth)
}

// tagged builds a value with a tag. Only !!str changes it.
func (b *Builder) tagged(out *Node, n *ast.TagNode, depth int) *Node {
	switch tag := n.GetToken().Value; {
	case !b.Tags, !slices.Contains([]string{"!!str", "!!int", "!!float", "!!bool", "!!null", "!!map", "!!seq"}, tag):
		out.Form = Broken
		b.fail(out.At, "", "tags such as %s are not read: leave it out", b.quote(tag))
		return out
	case tag != "!!str":
		return b.build(n.Value, depth+1)
	}
	out.Form = Text
	if literal, ok := n.Value.(*ast.LiteralNode); ok && literal.Value != nil {
		out.Text = literal.Value.Value
	} else if n.Value != nil && n.Value.GetToken() != nil {
		out.Text = n.Value.GetToken().Value
	}
	b.bytes += len(out.Text)
	return out
}

// follow builds the value of an anchor, and marks the anchor as open meanwhile.
func (b *Builder) follow(name string, target ast.Node, depth int) *Node {
	was := b.open[name]
	b.open[name] = true
	defer func() { b.open[name] = was }()
	return b.build(target, depth+1)
}

// mapping reads the keys of n into out. It reports a repeated key. A written key has priority over one from a merge (<<).
func (b *Builder) mapping(out *Node, n *ast.MappingNode, depth int) {
	out.Form = Mapping
	if n.Start != nil && n.Start.Type == token.MappingStartType {
		out.At = PositionOf(n.Start)
	} else if len(n.Values) > 0 {
		out.At = PositionOf(n.Values[0].Key.GetToken())
	}
	out.Key = out.At
	var merged []Field
	for _, v := range n.Values {
		at := PositionOf(v.Key.GetToken())
		if v.Key.IsMergeKey() {
			merged = append(merged, b.merge(v.Value, at, depth)...)
			continue
		}
		name, ok := b.keyName(v.Key)
		if !ok {
			b.fail(at, "", "a key must be a word")
			continue
		}
		b.bytes += len(name)
		value := b.at(step{name: name}, v.Value, depth)
		value.Key = at
		if first := out.Field(name); first != nil {
			b.fail(at, name, "is given twice; first on line %d", first.Key.Line)
			continue
		}
		out.Fields = append(out.Fields, Field{name, value})
	}
	for _, f := range merged {
		if out.Field(f.Name) == nil {
			out.Fields = append(out.Fields, f)
		}
	}
}

// merge returns the fields of a merge (<<), the ones with priority first.
func (b *Builder) merge(v ast.Node, at Position, depth int) []Field {
	from := b.build(v, depth+1)
	switch from.Form {
	case Mapping:
		return from.Fields
	case List:
		var all []Field
		for _, item := range from.Items {
			if item.Form == Mapping {
				all = append(all, item.Fields...)
			} else if item.Form != Broken {
				b.fail(item.At, "", "<< takes mappings only, found %s", item.Describe(b.quote))
			}
		}
		return all
	}
	if from.Form != Broken {
		b.fail(at, "", "<< takes a mapping, found %s", from.Describe(b.quote))
	}
	return nil
}

// keyName returns the name of a key. Numbers and the like are taken as written.
func (b *Builder) keyName(k ast.MapKeyNode) (string, bool) {
	var n ast.Node = k
	for range b.limits.Depth {
		switch inner := n.(type) {
		case *ast.AnchorNode:
			b.anchors[nameOf(inner.Name)] = inner.Value
			n = inner.Value
		case *ast.MappingKeyNode:
			n = inner.Value
		case *ast.StringNode:
			return inner.Value, true
		case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.NullNode, *ast.InfinityNode, *ast.NanNode:
			return inner.GetToken().Value, true
		default:
			return "", false
		}
	}
	return "", false
}

// nameOf returns the name of an anchor or alias.
func nameOf(n ast.Node) string {
	if n == nil || n.GetToken() == nil {
		return ""
	}
	return n.GetToken().Value
}

// Point says how to write a number that has a comma, as ": write 1.5, with a point". It returns "" for other texts.
func Point(text string) string {
	whole, part, comma := strings.Cut(text, ",")
	switch number := whole + "." + part; {
	case !comma || part == "" || !NumberText.MatchString(number):
		return ""
	case len(part) == 3 && strings.Trim(part, "0123456789") == "":
		return ": write " + whole + part + ", or " + number + ", without a comma"
	default:
		return ": write " + number + ", with a point"
	}
}

// NumberText matches words that are numbers if they are not in quotes.
var NumberText = regexp.MustCompile(`^[-+]?(\d[\d_]*(\.\d*)?|\.\d+)([eE][-+]?\d+)?$`)

// scalar reads a single value. Numbers keep their text, so that none is rounded.
func (b *Builder) scalar(out *Node, n ast.Node) {
	out.Scalar = n
	switch n := n.(type) {
	case *ast.NullNode:
		out.Form = Nothing
	case *ast.BoolNode:
		out.Form, out.Flag, out.Text = Boolean, n.Value, n.GetToken().Value
	case *ast.LiteralNode:
		out.Form = Text
		if n.Value != nil {
			out.Text = n.Value.Value
		}
	case *ast.StringNode:
		out.Form, out.Text = Text, n.Value
		if t := n.GetToken(); t.Type == token.StringType && NumberText.MatchString(n.Value) {
			out.decimal(n.Value)
		}
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		out.decimal(n.GetToken().Value)
	default:
		out.Form = Broken
		b.fail(out.At, "", "this value is not allowed here")
	}
}

// decimal sets n to the number in s. A whole number may be written 1e3, 0x1F or 1_000. Anything else, such as .inf, keeps
// its text.
func (n *Node) decimal(s string) {
	n.Form, n.Text = Number, s
	if i, ok := new(big.Int).SetString(wholeText(s), 0); ok {
		n.Form, n.Text = Integer, i.String()
		return
	}
	clean := strings.TrimPrefix(strings.ReplaceAll(s, "_", ""), "+")
	if f, err := strconv.ParseFloat(clean, 64); err == nil && NumberText.MatchString(s) {
		n.Text = strconv.FormatFloat(f, 'g', -1, 64)
		if f == float64(int64(f)) && f > -1e15 && f < 1e15 {
			n.Form, n.Text = Integer, strconv.FormatInt(int64(f), 10)
		}
	}
}

// wholeText writes a whole number in the form that big.Int reads. YAML reads 007 as 7.
func wholeText(s string) string {
	s = strings.TrimPrefix(strings.ReplaceAll(s, "_", ""), "+")
	sign := ""
	if strings.HasPrefix(s, "-") {
		sign, s = "-", s[1:]
	}
	if len(s) > 1 && s[0] == '0' && s[1] >= '0' && s[1] <= '9' {
		s = strings.TrimLeft(s[:len(s)-1], "0") + s[len(s)-1:]
	}
	if len(s) > 100 {
		return "" // too large for a plan
	}
	return sign + s
}

// PositionOf returns the position of a token. Some of the parser's tokens have none.
func PositionOf(t *token.Token) Position {
	if t == nil || t.Position == nil {
		return Position{}
	}
	return Position{Line: max(t.Position.Line, 1), Column: max(t.Position.Column, 1)}
}
