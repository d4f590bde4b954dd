package planfile

import (
	"errors"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"parley/internal/kit/files"
	"parley/internal/kit/yamltree"
)

// The limits of a plan are far above what a plan needs. They protect against aliases of aliases and
// deep nesting: the parser's time grows with the square of the tokens.
const (
	maxTokens = 20_000
	maxNodes  = 20_000   // after aliases are followed
	maxTexts  = 16 << 20 // bytes of all texts, after aliases are followed
)

// parseDocument reads the text of a source as one YAML document. It returns nil after reporting an error.
func parseDocument(rep *Report) *yamltree.Node {
	root := parseTree(rep)
	if root == nil {
		rep.Source.Conceal(secretsGuessed(rep.Source.Text))
	} else {
		rep.Source.Conceal(secretsOf(root))
	}
	return root
}

func parseTree(rep *Report) *yamltree.Node {
	file, err := files.ParseYAML(rep.Source.Text, files.Limits{Tokens: maxTokens, Depth: yamltree.MaxDepth})
	if err != nil {
		what, at := plainer(err, rep.Source)
		rep.Add(at, nil, "%s", what)
		return nil
	}
	body := oneDocument(file, rep)
	if body == nil {
		return nil
	}
	b := yamltree.NewBuilder(yamltree.Limits{Nodes: maxNodes, Bytes: maxTexts, Depth: yamltree.MaxDepth}, rep.Add, rep.Quote)
	root := b.Build(body)
	if b.Over {
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
func plainer(err error, src *source) (string, yamltree.Position) {
	ye, ok := errors.AsType[*files.YAMLError](err)
	if !ok {
		return "is not YAML", yamltree.Position{}
	}
	at := yamltree.Position{Line: ye.Line, Column: ye.Column}
	if ye.Parser == "" {
		return ye.Problem, at
	}
	if line, ok := src.line(at.Line); ok {
		if lead := line[:len(line)-len(strings.TrimLeft(line, " \t"))]; strings.Contains(lead, "\t") {
			return hints()[0].say, yamltree.Position{Line: at.Line, Column: 1 + strings.Index(lead, "\t")}
		}
	}
	for _, h := range hints() {
		if strings.Contains(ye.Parser, h.has) {
			return h.say, at
		}
	}
	return ye.Problem, at
}

// oneDocument returns the body of the only document.
func oneDocument(file *ast.File, rep *Report) ast.Node {
	var body ast.Node
	for _, d := range file.Docs {
		switch {
		case d.Body == nil:
		case d.Body.Type() == ast.DirectiveType:
			rep.Add(yamltree.PositionOf(d.Body.GetToken()), nil, "%% directives are not read: leave the line out")
			return nil
		case body != nil:
			at := yamltree.PositionOf(d.Start)
			if d.Start == nil {
				at = yamltree.PositionOf(d.Body.GetToken())
			}
			rep.Add(at, nil, "a second document begins here: a file holds one, without --- between")
			return nil
		default:
			body = d.Body
		}
	}
	if body == nil {
		rep.Add(yamltree.Position{}, nil, "is empty%s", rep.Source.begin())
	}
	return body
}
