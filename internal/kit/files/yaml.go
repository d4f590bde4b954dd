package files

import (
	"errors"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// YAMLLimits limit what is parsed of a YAML text. The parser keeps about 600 bytes for each token, its
// time grows faster than their number, and it recurses.
type YAMLLimits struct {
	// Tokens is the maximum number of words and signs.
	Tokens int
	// Depth is how deep values may be nested.
	Depth int
}

// looseMarks is how many signs, for each allowed token, a text may have before it is split into
// tokens: most signs in prose are not tokens.
const looseMarks = 16

// YAMLError says what is wrong with a YAML text, and where.
type YAMLError struct {
	Line, Column int // from 1; 0: not known
	Problem      string
	// Parser is the parser's message, if the parser refused the text.
	Parser string
}

// Error implements error.
func (e *YAMLError) Error() string {
	where := ""
	if e.Line > 0 {
		where = "line " + strconv.Itoa(e.Line) + ": "
	}
	return where + e.Problem
}

// ParseYAML parses a text within limits. It does not follow aliases: a caller that does must count.
// Its error is a *YAMLError. It never panics.
func ParseYAML(text string, l YAMLLimits) (file *ast.File, err error) {
	defer func() {
		if p := recover(); p != nil { // in the parser
			file, err = nil, &YAMLError{Problem: "is not YAML"}
		}
	}()
	if countMarks(text) > looseMarks*l.Tokens {
		return nil, &YAMLError{Problem: "is too large: more than " + strconv.Itoa(l.Tokens) + " words and signs"}
	}
	tokens := lexer.Tokenize(text)
	if err := checkTokens(tokens, l); err != nil {
		return nil, err
	}
	file, err = parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err == nil {
		return file, nil
	}
	e := &YAMLError{Problem: "is not YAML"}
	if ye, ok := errors.AsType[yaml.Error](err); ok {
		e.Parser, e.Problem = ye.GetMessage(), "is not YAML: "+ye.GetMessage()
		if t := ye.GetToken(); t != nil && t.Position != nil {
			e.Line, e.Column = max(t.Position.Line, 1), max(t.Position.Column, 1)
		}
	}
	return nil, e
}

// countMarks counts the bytes of a text that may begin or end a token. A text has at most twice as many
// tokens.
func countMarks(text string) int {
	n := 0
	for i := range len(text) {
		if strings.IndexByte("[]{},:-?&*!|>#%@`'\"\n", text[i]) >= 0 {
			n++
		}
	}
	return n
}

// checkTokens refuses a text that takes the parser too long, or makes it recurse too deep.
func checkTokens(tokens token.Tokens, l YAMLLimits) error {
	if len(tokens) > l.Tokens {
		return yamlErrorAt(tokens[l.Tokens], "is too large: more than "+strconv.Itoa(l.Tokens)+" words and signs up to here")
	}
	flow, line, inLine := 0, 0, 0
	for _, t := range tokens {
		if t.Position.Line != line {
			line, inLine = t.Position.Line, 0
		}
		switch t.Type {
		case token.MappingStartType, token.SequenceStartType:
			flow++
		case token.MappingEndType, token.SequenceEndType:
			flow--
		case token.SequenceEntryType, token.MappingKeyType, token.AnchorType, token.TagType:
			inLine++
		}
		if flow > l.Depth || inLine > 2*l.Depth {
			return yamlErrorAt(t, "is nested too deeply: at most "+strconv.Itoa(l.Depth)+" levels")
		}
	}
	return nil
}

func yamlErrorAt(t *token.Token, problem string) error {
	e := &YAMLError{Problem: problem}
	if t != nil && t.Position != nil {
		e.Line, e.Column = max(t.Position.Line, 1), max(t.Position.Column, 1)
	}
	return e
}
