package config

import (
	"math/big"
	"regexp"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	inputs "parley/internal/files"
)

// builder turns the parser's tree into nodes: it follows aliases, merges, and counts.
type builder struct {
	rep     *report
	anchors map[string]ast.Node
	open    map[string]bool // anchors being followed
	count   int
	bytes   int  // of the texts
	over    bool // a bound was reached: reported once
}

// build returns the node of n, which stands at p. It is never nil.
func (b *builder) build(n ast.Node, p path, depth int) *node {
	out := &node{}
	if n == nil {
		return out
	}
	out.at = placeOf(n.GetToken())
	out.key = out.at
	b.count++
	if b.over || b.count > maxNodes || b.bytes > maxTexts || depth > maxDepth {
		b.stop(out.at, p, depth)
		return out
	}
	switch n := n.(type) {
	case *ast.MappingNode:
		b.mapping(out, n, p, depth)
	case *ast.MappingValueNode:
		b.mapping(out, &ast.MappingNode{Values: []*ast.MappingValueNode{n}}, p, depth)
	case *ast.SequenceNode:
		out.form = list
		for i, item := range n.Values {
			out.items = append(out.items, b.build(item, p.to("["+strconv.Itoa(i)+"]"), depth+1))
		}
	case *ast.AnchorNode:
		b.anchors[nameOf(n.Name)] = n.Value
		marked := b.follow(nameOf(n.Name), n.Value, p, depth)
		marked.anchor = true
		return marked
	case *ast.AliasNode:
		return b.alias(out, n, p, depth)
	case *ast.TagNode:
		out.form = broken
		b.rep.add(out.at, p, "tags such as %s are not read: leave it out", b.rep.quote(n.GetToken().Value))
	default:
		b.scalar(out, n)
		b.bytes += len(out.text)
	}
	return out
}

// stop reports the bound that was reached, once.
func (b *builder) stop(at place, _ path, depth int) {
	if b.over {
		return
	}
	b.over = true
	if depth > maxDepth {
		b.rep.add(at, nil, "is nested too deeply: at most %d levels", maxDepth)
		return
	}
	if b.bytes > maxTexts {
		b.rep.add(at, nil, "is too large: its texts are more than %s when its aliases (*) are followed", inputs.Size(maxTexts))
		return
	}
	b.rep.add(at, nil, "is too large: more than %d values when its aliases (*) are followed", maxNodes)
}

func (b *builder) alias(out *node, n *ast.AliasNode, p path, depth int) *node {
	name := nameOf(n.Value)
	out.form = broken // unless it can be followed
	target, known := b.anchors[name]
	switch {
	case !known:
		b.rep.add(out.at, p, "*%s refers to nothing: there is no &%s before it", name, name)
		return out
	case b.open[name]:
		b.rep.add(out.at, p, "*%s is inside &%s itself", name, name)
		return out
	}
	return b.follow(name, target, p, depth)
}

// follow builds what an anchor marks, knowing that it is within it.
func (b *builder) follow(name string, target ast.Node, p path, depth int) *node {
	was := b.open[name]
	b.open[name] = true
	defer func() { b.open[name] = was }()
	return b.build(target, p, depth+1)
}

// mapping reads the keys of n into out. A key given twice is reported; one that a merge
// (<<) brings gives way to one that is written.
func (b *builder) mapping(out *node, n *ast.MappingNode, p path, depth int) {
	out.form = mapping
	if n.Start != nil && n.Start.Type == token.MappingStartType {
		out.at = placeOf(n.Start)
	} else if len(n.Values) > 0 {
		out.at = placeOf(n.Values[0].Key.GetToken())
	}
	out.key = out.at
	var merged []field
	for _, v := range n.Values {
		at := placeOf(v.Key.GetToken())
		if v.Key.IsMergeKey() {
			merged = append(merged, b.merge(v.Value, at, p, depth)...)
			continue
		}
		name, ok := b.keyName(v.Key)
		if !ok {
			b.rep.add(at, p, "a key must be a word")
			continue
		}
		b.bytes += len(name)
		value := b.build(v.Value, p.to(name), depth+1)
		value.key = at
		if first := out.field(name); first != nil {
			b.rep.add(at, p.to(name), "is given twice; first on line %d", first.key.line)
			continue
		}
		out.fields = append(out.fields, field{name, value})
	}
	for _, f := range merged {
		if out.field(f.name) == nil {
			out.fields = append(out.fields, f)
		}
	}
}

// merge returns the fields that a << brings, earlier ones first.
func (b *builder) merge(v ast.Node, at place, p path, depth int) []field {
	from := b.build(v, p, depth+1)
	switch from.form {
	case mapping:
		return from.fields
	case list:
		var all []field
		for _, item := range from.items {
			if item.form == mapping {
				all = append(all, item.fields...)
			} else if item.form != broken {
				b.rep.add(item.at, p, "<< takes mappings only, found %s", b.rep.found(item))
			}
		}
		return all
	}
	if from.form != broken {
		b.rep.add(at, p, "<< takes a mapping, found %s", b.rep.found(from))
	}
	return nil
}

// keyName returns what a key is called. Numbers and the like are taken as they are written.
func (b *builder) keyName(k ast.MapKeyNode) (string, bool) {
	var n ast.Node = k
	for range maxDepth {
		switch inner := n.(type) {
		case *ast.AnchorNode:
			b.anchors[nameOf(inner.Name)] = inner.Value
			n = inner.Value
		case *ast.MappingKeyNode:
			n = inner.Value
		case *ast.StringNode:
			return inner.Value, true
		case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
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

// numberText is what counts as a number where a word stands without quotes.
var numberText = regexp.MustCompile(`^[-+]?(\d[\d_]*(\.\d*)?|\.\d+)([eE][-+]?\d+)?$`)

// scalar reads a single value. Numbers keep their text, so that none is rounded on the way.
func (b *builder) scalar(out *node, n ast.Node) {
	switch n := n.(type) {
	case *ast.NullNode:
		out.form = nothing
	case *ast.BoolNode:
		out.form, out.flag, out.text = boolean, n.Value, n.GetToken().Value
	case *ast.LiteralNode:
		out.form = text
		if n.Value != nil {
			out.text = n.Value.Value
		}
	case *ast.StringNode:
		out.form, out.text = text, n.Value
		if t := n.GetToken(); t.Type == token.StringType && numberText.MatchString(n.Value) {
			out.decimal(n.Value)
		}
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		out.decimal(n.GetToken().Value)
	default:
		out.form = broken
		b.rep.add(out.at, nil, "this value is not allowed here")
	}
}

// decimal sets n to the number that s writes. A whole number is one however it is
// written (1e3, 0x1F, 1_000); what is none at all (.inf) keeps its text.
func (n *node) decimal(s string) {
	n.form, n.text = number, s
	if i, ok := new(big.Int).SetString(wholeText(s), 0); ok {
		n.form, n.text = integer, i.String()
		return
	}
	clean := strings.TrimPrefix(strings.ReplaceAll(s, "_", ""), "+")
	if f, err := strconv.ParseFloat(clean, 64); err == nil && numberText.MatchString(s) {
		n.text = strconv.FormatFloat(f, 'g', -1, 64)
		if f == float64(int64(f)) && f > -1e15 && f < 1e15 {
			n.form, n.text = integer, strconv.FormatInt(int64(f), 10)
		}
	}
}

// wholeText writes a whole number as big.Int reads it. YAML reads 007 as 7.
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
		return "" // no number a plan can hold
	}
	return sign + s
}
