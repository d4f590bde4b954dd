package config

import (
	"errors"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	inputs "parley/internal/files"
)

// The limits of a plan are far above what a plan needs. They protect against aliases of aliases and
// deep nesting: the parser's time grows with the square of the tokens.
const (
	maxTokens = 20_000
	maxDepth  = 40
	maxNodes  = 20_000   // after aliases are followed
	maxTexts  = 16 << 20 // bytes of all texts, after aliases are followed
)

// form is the type of a value.
type form int

const (
	nothing form = iota
	broken       // an error was reported
	boolean
	integer
	number
	text
	list
	mapping
	duration // only in shapes
	anything // only in shapes
)

// node is a value of a plan from YAML, an override, or a recorded plan.
type node struct {
	form   form
	at     place // of the value
	key    place // of its key; at the root, of the value
	text   string
	flag   bool
	anchor bool // marked with &
	items  []*node
	fields []field
}

// field is a key of a mapping and its value.
type field struct {
	name  string
	value *node
}

// field returns the value under name, or nil.
func (n *node) field(name string) *node {
	if n == nil {
		return nil
	}
	for _, f := range n.fields {
		if f.name == name {
			return f.value
		}
	}
	return nil
}

// has reports whether there is a node at p.
func (n *node) has(p path) bool {
	return len(p) == 0 || n.find(p) != n.find(p[:len(p)-1])
}

// find returns the node at p, or the last one on the way if there is none.
func (n *node) find(p path) *node {
	for _, step := range p {
		next := n.field(step)
		if inner, ok := strings.CutPrefix(step, "["); ok && next == nil {
			if i, err := strconv.Atoi(strings.TrimSuffix(inner, "]")); err == nil && i < len(n.items) {
				next = n.items[i]
			}
		}
		if next == nil {
			return n
		}
		n = next
	}
	return n
}

// steps splits the path of a value below n. A key that exists may contain dots.
func (n *node) steps(name string) (out path) {
	rest := keyPath(name)
	for len(rest) > 0 {
		k := len(rest)
		for k > 1 && n.field(strings.Join(rest[:k], ".")) == nil {
			k--
		}
		step := strings.Join(rest[:k], ".")
		out, rest, n = append(out, step), rest[k:], n.find(path{step})
	}
	return out
}

// parse reads the text of a source as one YAML document. It returns nil after reporting an error.
func parse(rep *report) *node {
	root := parseTree(rep)
	if root == nil {
		rep.src.conceal(secretsGuessed(rep.src.text))
	} else {
		rep.src.conceal(secretsOf(root))
	}
	return root
}

func parseTree(rep *report) *node {
	file, err := inputs.ParseYAML(rep.src.text, inputs.Limits{Tokens: maxTokens, Depth: maxDepth})
	if err != nil {
		what, at := plainer(err, rep.src)
		rep.add(at, nil, "%s", what)
		return nil
	}
	body := oneDocument(file, rep)
	if body == nil {
		return nil
	}
	b := &builder{rep: rep, anchors: map[string]ast.Node{}, open: map[string]bool{}}
	root := b.build(body, nil, 0)
	if b.over {
		return nil // an incomplete tree would cause misleading errors
	}
	return root
}

// hints replace messages of the parser that say too little.
func hints() []hint {
	return []hint{
		{"found character '\t'", "a tab cannot indent: use spaces"},
		{"tab character", "a tab cannot indent: use spaces"},
		{"mapping value is not allowed", "a key and value are not allowed here: check the indentation of this line and the next; a value that holds `: ` needs quotes"},
		{"value is not allowed in this context", "a value is not allowed here: check the indentation; after a text in quotes nothing may follow"},
		{"unexpected key name", "is not `key: value`: a colon and a space are missing"},
		{"non-map value is specified", "is not `key: value`: check the indentation, and that a colon and a space follow the key"},
		{"sequence end token ']' not found", "this [ is never closed with ]"},
		{"could not find flow mapping end token", "this { is never closed with }"},
		{"end character of single-quoted", "this ' is never closed"},
		{"end character of double-quoted", "this \" is never closed"},
		{"block sequence entries are not allowed", "a list cannot begin here: put its first - on its own line"},
		{"reserved character", "begins with a sign that YAML reserves: put it in quotes"},
		{"unexpected directive", "begins with a sign that YAML reserves: put it in quotes"},
		{"',' or '}' must be specified", "a , or a } is missing before this"},
		{"',' or ']' must be specified", "a , or a ] is missing before this"},
		{"undefined anchor value", "this anchor (&) marks no value"},
	}
}

type hint struct{ has, say string }

// plainer explains an error of the parser, and returns its position.
func plainer(err error, src *source) (string, place) {
	ye, ok := errors.AsType[*inputs.YAMLError](err)
	if !ok {
		return "is not YAML", place{}
	}
	at := place{line: ye.Line, column: ye.Column}
	if ye.Parser == "" {
		return ye.Problem, at
	}
	if line, ok := src.line(at.line); ok {
		if lead := line[:len(line)-len(strings.TrimLeft(line, " \t"))]; strings.Contains(lead, "\t") {
			return hints()[0].say, place{line: at.line, column: 1 + strings.Index(lead, "\t")}
		}
	}
	for _, h := range hints() {
		if strings.Contains(ye.Parser, h.has) {
			return h.say, at
		}
	}
	return ye.Problem, at
}

// placeOf returns the position of a token. Some of the parser's tokens have none.
func placeOf(t *token.Token) place {
	if t == nil || t.Position == nil {
		return place{}
	}
	return place{line: max(t.Position.Line, 1), column: max(t.Position.Column, 1)}
}

// oneDocument returns the body of the only document.
func oneDocument(file *ast.File, rep *report) ast.Node {
	var body ast.Node
	for _, d := range file.Docs {
		switch {
		case d.Body == nil:
		case d.Body.Type() == ast.DirectiveType:
			rep.add(placeOf(d.Body.GetToken()), nil, "%% directives are not read: leave the line out")
			return nil
		case body != nil:
			at := placeOf(d.Start)
			if d.Start == nil {
				at = placeOf(d.Body.GetToken())
			}
			rep.add(at, nil, "a second document begins here: a file holds one, without --- between")
			return nil
		default:
			body = d.Body
		}
	}
	if body == nil {
		rep.add(place{}, nil, "is empty%s", rep.src.begin())
	}
	return body
}
