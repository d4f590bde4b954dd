package answer

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// parser reads one JSON value tolerantly and writes it as strict JSON.
//
// It accepts what has only one meaning: comments, trailing commas, single and curly quotes, keys without quotes,
// True, False, None, raw line breaks in strings, unknown escapes. It does not guess: it refuses missing commas or
// values, NaN, and an ellipsis.
type parser struct {
	in  string
	pos int
	out []byte

	depth   int
	members int  // complete members and items so far
	number  bool // the last value is a number, which may be incomplete
	closed  bool // a closing fence ended the value before its brackets
	// closable means that only the last } is missing at the end of the text.
	closable bool
}

// maxDepth limits how deep an answer may be nested.
const maxDepth = 64

// errCut means that the text ended inside the value.
var errCut = errors.New("cut off")

// syntaxError says where and why the text is not a JSON value.
type syntaxError struct {
	at    int
	depth int // of objects and arrays open there
	what  string
}

func (e *syntaxError) Error() string { return e.what }

func (p *parser) fail(format string, args ...any) error {
	return &syntaxError{at: p.pos, depth: p.depth, what: fmt.Sprintf(format, args...)}
}

// value reads the value at pos, which is not white space.
func (p *parser) value() error {
	if p.pos >= len(p.in) {
		return errCut
	}
	p.number = false
	switch c := p.in[p.pos]; {
	case c == '{':
		return p.nested('}', p.member)
	case c == '[':
		return p.nested(']', p.value)
	case c == '-' || c == '+' || c == '.' || isDigit(c):
		p.number = true
		return p.numeral()
	}
	if end := closingQuote(p.in[p.pos:]); end != 0 {
		return p.text(end)
	}
	return p.word()
}

// nested reads an object or array; part reads one member or item.
func (p *parser) nested(end byte, part func() error) error {
	if p.depth++; p.depth > maxDepth {
		return p.fail("nested more than %d deep", maxDepth)
	}
	defer func() { p.depth--; p.number = false }()
	p.out = append(p.out, p.in[p.pos])
	p.pos++
	for n := 0; ; n++ {
		done, err := p.ends(end, n)
		if done || err != nil {
			return err
		}
		if n > 0 {
			p.out = append(p.out, ',')
		}
		if err := part(); err != nil {
			return err
		}
		p.members++
		if p.closed {
			p.out = append(p.out, end)
			return nil
		}
	}
}

// ends reads the text between two parts and reports whether the object or array ends there, after n parts.
func (p *parser) ends(end byte, n int) (bool, error) {
	p.space()
	comma := false
	if n > 0 && p.peek() == ',' {
		comma = true
		p.pos++
		p.space()
	}
	switch {
	case p.pos >= len(p.in):
		p.closable = n > 0 && !comma && !p.number && p.depth == 1 && end == '}'
		return false, errCut
	case p.peek() == end:
		p.pos++
	case n > 0 && strings.HasPrefix(p.in[p.pos:], fence):
		p.closed = true // the model continued after the value
	case n > 0 && !comma:
		return false, p.fail("expected , or %c, found %s", end, p.found())
	default:
		return false, nil
	}
	p.out = append(p.out, end)
	return true, nil
}

func (p *parser) member() error {
	if err := p.key(); err != nil {
		return err
	}
	p.space()
	if p.pos >= len(p.in) {
		return errCut
	}
	if p.peek() != ':' {
		return p.fail("expected : after a key, found %s", p.found())
	}
	p.pos++
	p.out = append(p.out, ':')
	p.space()
	return p.value()
}

func (p *parser) key() error {
	if end := closingQuote(p.in[p.pos:]); end != 0 {
		return p.text(end)
	}
	name := p.name()
	if name == "" {
		return p.fail("expected a key, found %s", p.found())
	}
	p.pos += len(name)
	p.out = appendQuoted(p.out, name)
	return nil
}

// name returns the letters, digits, _, $ and - at pos.
func (p *parser) name() string {
	rest := p.in[p.pos:]
	end := strings.IndexFunc(rest, func(r rune) bool {
		return r != '_' && r != '$' && r != '-' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
	if end < 0 {
		return rest
	}
	return rest[:end]
}

// words maps the literals of JSON and Python to those of JSON.
func words() map[string]string {
	return map[string]string{"true": "true", "false": "false", "null": "null", "True": "true", "False": "false", "None": "null"}
}

func (p *parser) word() error {
	name := p.name()
	strict, ok := words()[name]
	if !ok {
		if name != "" && p.pos+len(name) == len(p.in) {
			return errCut // it may be incomplete
		}
		return p.fail("expected a value, found %s", p.found())
	}
	p.pos += len(name)
	p.out = append(p.out, strict...)
	return nil
}

// numeral reads a number, including +1, .5 and 5.
func (p *parser) numeral() error {
	i := p.pos
	digits := func() string {
		from := i
		for i < len(p.in) && isDigit(p.in[i]) {
			i++
		}
		return p.in[from:i]
	}
	at := func(set string) bool { return i < len(p.in) && strings.IndexByte(set, p.in[i]) >= 0 }
	n := ""
	if at("+-") {
		n = strings.TrimPrefix(p.in[i:i+1], "+")
		i++
	}
	whole, part, power := digits(), "", ""
	if at(".") {
		i++
		part = digits()
	}
	if at("eE") {
		i++
		power = "e"
		if at("+-") {
			power += p.in[i : i+1]
			i++
		}
		power += digits()
	}
	switch ok := isNumeral(whole, part, power); {
	case !ok && i == len(p.in):
		return errCut
	case !ok, p.goesOn(i):
		return p.fail("expected a number, found %s", p.found())
	}
	if whole == "" {
		whole = "0"
	}
	if part != "" {
		part = "." + part
	}
	p.pos = i
	p.out = append(p.out, n+whole+part+power...)
	return nil
}

// isNumeral reports whether the pieces make a number that loses nothing as JSON. 007 is more likely a name.
func isNumeral(whole, part, power string) bool {
	if whole == "" && part == "" || len(whole) > 1 && whole[0] == '0' {
		return false
	}
	return power == "" || isDigit(power[len(power)-1])
}

// goesOn reports whether the text up to i is only the beginning of a word.
func (p *parser) goesOn(i int) bool {
	r, _ := utf8.DecodeRuneInString(p.in[i:])
	return r == '_' || r == '.' || r == '%' || unicode.IsLetter(r) || unicode.IsDigit(r)
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// peek returns the byte at pos, or 0 at the end.
func (p *parser) peek() byte {
	if p.pos < len(p.in) {
		return p.in[p.pos]
	}
	return 0
}

// space skips white space and comments.
func (p *parser) space() {
	for p.pos < len(p.in) {
		rest := p.in[p.pos:]
		r, size := utf8.DecodeRuneInString(rest)
		switch {
		case unicode.IsSpace(r), r == '\ufeff':
			p.pos += size
		case r == '#', strings.HasPrefix(rest, "//"):
			p.skipTo("\n")
		case strings.HasPrefix(rest, "/*"):
			p.skipTo("*/")
		default:
			return
		}
	}
}

// skipTo moves after the next end, or to the end of the text.
func (p *parser) skipTo(end string) {
	if i := strings.Index(p.in[p.pos:], end); i >= 0 {
		p.pos += i + len(end)
		return
	}
	p.pos = len(p.in)
}

// found quotes the text at pos.
func (p *parser) found() string {
	rest := p.in[p.pos:min(len(p.in), p.pos+64)]
	if i := strings.IndexAny(rest, " \t\r\n,:{}[]"); i > 0 {
		rest = rest[:i]
	} else if i == 0 {
		_, size := utf8.DecodeRuneInString(rest)
		rest = rest[:size]
	}
	return quoted(rest, 20)
}
