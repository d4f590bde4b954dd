package planfile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"

	"parley/internal/kit/files"
	"parley/internal/kit/yamltree"
)

// MaxSize is the largest plan file. It keeps a wrong file, such as a run file, from being parsed.
const MaxSize = 1 << 20

// maxText is the largest text file that params may name, such as a set of problems.
const maxText = 64 << 20

// source is the text of a plan file.
type source struct {
	Name    string
	Text    string
	Secrets []string // hidden in errors

	Recorded bool // the plan of a run, not a file
	Beside   bool // a file that a plan names, not a plan
}

// line returns a line of the text, counted from 1. It does not split the text, which could take many
// times its size.
func (s *source) line(n int) (string, bool) {
	for line := range strings.SplitSeq(s.Text, "\n") {
		if n--; n == 0 {
			return line, true
		}
	}
	return "", false
}

// begin suggests how to get a plan.
func (s *source) begin() string {
	if s.Beside {
		return ""
	}
	return "; `parley init KIND` writes a plan to begin with"
}

// readFile reads at most limit+1 bytes of the file at path. what describes the wanted file for errors.
func readFile(ctx context.Context, path, what string, limit int64) (b []byte, err error) {
	f, err := files.Open(path)
	if err == nil {
		b, err = io.ReadAll(io.LimitReader(files.ContextReader(ctx, f), limit+1))
		err = errors.Join(err, f.Close())
	}
	if err == nil {
		return b, nil
	}
	fail := func(format string, args ...any) error {
		return Errors{{File: path, Problem: fmt.Sprintf(format, args...)}}
	}
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		err = pe.Err
	}
	info, statErr := os.Stat(path)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.Is(err, fs.ErrNotExist):
		return nil, fail("%s", strings.TrimPrefix(err.Error(), path+": "))
	case errors.Is(err, files.ErrNotRegular) && statErr == nil && info.IsDir():
		return nil, fail("is a directory: name the %s in it", what)
	case errors.Is(err, files.ErrNotRegular):
		return nil, fail("%s: name a %s", strings.TrimPrefix(err.Error(), path+": "), what)
	default:
		return nil, fail("cannot be read: %v", err)
	}
}

// newPlanReport is newReport for the bytes of a plan.
func newPlanReport(name string, b []byte) *report { return newReport(&source{Name: name}, b, MaxSize) }

// newReport makes the bytes b the text of src, and reports what makes them unusable as text.
func newReport(src *source, b []byte, limit int) *report {
	rep := &report{Source: src}
	switch {
	case bytes.HasPrefix(b, []byte("SQLite format 3\x00")):
		rep.Add(yamltree.Position{}, nil, "is a run file, not a plan: `parley run` resumes it, `parley show` shows it")
		return rep
	case len(b) > limit:
		rep.Add(yamltree.Position{}, nil, "is larger than %s: is it the right file?", files.Size(int64(limit)))
		return rep
	case bytes.HasPrefix(b, []byte{0xFF, 0xFE}), bytes.HasPrefix(b, []byte{0xFE, 0xFF}):
		rep.Add(yamltree.Position{}, nil, "is UTF-16: save it as UTF-8")
		return rep
	case isBinary(b):
		rep.Add(yamltree.Position{}, nil, "is not text: it must be UTF-8 text%s", src.begin())
		return rep
	}
	b = bytes.TrimPrefix(b, []byte("\uFEFF"))
	src.Text = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(strings.ToValidUTF8(string(b), "\uFFFD"))
	src.Conceal(secretsIn(src.Text))
	if i := notText(b); i >= 0 {
		line, column := 1+bytes.Count(b[:i], []byte("\n")), 1+utf8.RuneCount(b[bytes.LastIndexByte(b[:i], '\n')+1:i])
		what := fmt.Sprintf("the control character 0x%02x", b[i])
		if b[i] >= utf8.RuneSelf {
			what = fmt.Sprintf("the byte 0x%02x, which is not UTF-8", b[i])
		}
		src.Conceal(secretsGuessed(src.Text))
		rep.Add(yamltree.Position{Line: line, Column: column}, nil, "holds %s: it must be UTF-8 text", what)
		return rep
	}
	return rep
}

// isBinary reports whether b is not text at all, rather than a text with an error.
func isBinary(b []byte) bool {
	b = b[:min(len(b), 1024)]
	strange := 0
	for len(b) > 0 {
		i := notText(b)
		if i < 0 {
			break
		}
		strange++
		b = b[i+1:]
	}
	return strange > 50
}

// notText returns the index of the first byte that is not UTF-8 text, or -1.
func notText(b []byte) int {
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 || r < ' ' && r != '\n' && r != '\t' && r != '\r' || r == 0x7F {
			return i
		}
		i += n
	}
	return -1
}

// The limits of a plan are far above what a plan needs. They protect against aliases of aliases and
// deep nesting: the parser's time grows with the square of the tokens.
const (
	maxTokens = 20_000
	maxNodes  = 20_000   // after aliases are followed
	maxTexts  = 16 << 20 // bytes of all texts, after aliases are followed
)

// parseYAML reads the text of a source as one YAML document. It returns nil after reporting an error.
func parseYAML(rep *report) *yamltree.Node {
	root := parseTree(rep)
	if root == nil {
		rep.Source.Conceal(secretsGuessed(rep.Source.Text))
	} else {
		rep.Source.Conceal(secretsOf(root))
	}
	return root
}

func parseTree(rep *report) *yamltree.Node {
	file, err := files.ParseYAML(rep.Source.Text, files.YAMLLimits{Tokens: maxTokens, Depth: yamltree.MaxDepth})
	if err != nil {
		what, at := explainYAML(err, rep.Source)
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

// explainYAML explains an error of the parser, and returns its position.
func explainYAML(err error, src *source) (string, yamltree.Position) {
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
func oneDocument(file *ast.File, rep *report) ast.Node {
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
