package answer

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"parley/internal/ask/wire/body"
	"parley/internal/kit/text"
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
	p.out = body.Text(p.out, name)
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

// pythonWords maps the literals of JSON and Python to those of JSON.
func pythonWords() map[string]string {
	return map[string]string{"true": "true", "false": "false", "null": "null", "True": "true", "False": "false", "None": "null"}
}

func (p *parser) word() error {
	name := p.name()
	strict, ok := pythonWords()[name]
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

// closingQuote returns the quote that ends a string beginning at s, or 0.
func closingQuote(s string) rune {
	switch r, _ := utf8.DecodeRuneInString(s); r {
	case '"', '\'':
		return r
	case '“':
		return '”'
	case '‘':
		return '’'
	}
	return 0
}

// text reads a string that ends with the given quote.
func (p *parser) text(end rune) error {
	_, size := utf8.DecodeRuneInString(p.in[p.pos:])
	i := p.pos + size
	var b strings.Builder
	for i < len(p.in) {
		r, size := utf8.DecodeRuneInString(p.in[i:])
		switch {
		case r == end && !isApostrophe(p.in, i, r):
			p.pos = i + size
			p.out = body.Text(p.out, b.String())
			return nil
		case r == '\\':
			s, size, ok := unescape(p.in[i:])
			if size == 0 {
				return errCut
			}
			if !ok {
				p.pos = i
				return p.fail("bad escape %s", quoted(p.in[i:i+size], 12))
			}
			b.WriteString(s)
			i += size
		default:
			b.WriteString(p.in[i : i+size])
			i += size
		}
	}
	return errCut
}

// isApostrophe reports whether the quote at i is between two letters, as in it's, and so does not end the string.
func isApostrophe(s string, i int, quote rune) bool {
	if quote == '"' || quote == '”' {
		return false
	}
	before, _ := utf8.DecodeLastRuneInString(s[:i])
	after, _ := utf8.DecodeRuneInString(s[i+utf8.RuneLen(quote):])
	return unicode.IsLetter(before) && unicode.IsLetter(after)
}

// unescape reads the escape at the start of s. Size 0 means that s ends inside it. An escape that JSON does not know,
// such as \d or \_, stands for itself.
func unescape(s string) (text string, size int, ok bool) {
	if len(s) < 2 {
		return "", 0, false
	}
	switch c := s[1]; c {
	case '"', '\'', '\\', '/':
		return s[1:2], 2, true
	case 'b', 'f', 'n', 'r', 't':
		return string("\b\f\n\r\t"[strings.IndexByte("bfnrt", c)]), 2, true
	case '\n':
		return "", 2, true // JavaScript's line continuation
	case 'u':
		return unescapeUnicode(s)
	}
	_, n := utf8.DecodeRuneInString(s[1:])
	return s[:1+n], 1 + n, true
}

// unescapeUnicode reads \u0041, or a surrogate pair.
func unescapeUnicode(s string) (string, int, bool) {
	if len(s) < 6 {
		return "", 0, false
	}
	r, ok := hex4(s)
	if !ok {
		return "", 6, false
	}
	if utf16.IsSurrogate(r) {
		if low, ok := hex4(s[6:]); ok {
			if pair := utf16.DecodeRune(r, low); pair != unicode.ReplacementChar {
				return string(pair), 12, true
			}
		}
		r = unicode.ReplacementChar
	}
	return string(r), 6, true
}

func hex4(s string) (rune, bool) {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(s[2:6], 16, 32)
	return rune(n), err == nil
}

// quoted quotes at most n characters of s on one line, for an error.
func quoted(s string, n int) string {
	if s == "" {
		return "nothing"
	}
	return strconv.Quote(text.Excerpt(s, n))
}

const fence = "```"

// candidate is a JSON value found in a text.
type candidate struct {
	json   []byte
	fenced bool // in a code fence
}

// scan finds the objects and arrays in a text.
type scan struct {
	in      string
	pos     int
	budget  int // bytes that may still be parsed, so that hostile text takes linear time
	inFence bool

	found   []candidate  // in order, the last maxFound of them
	cut     bool         // the text ends inside a value or a thought
	almost  []byte       // the last value, closed, if only its last } is missing
	syntax  *syntaxError // of the value that was parsed furthest
	members int          // of that value
	plain   strings.Builder
}

// maxFound limits the values to check; the intended one is among the last.
const maxFound = 256

// newScan scans text.
func newScan(text string) *scan {
	s := &scan{in: text, budget: 16*len(text) + 4096}
	from := 0 // start of the text that is not yet in plain
	for s.pos < len(s.in) && s.budget > 0 {
		i := strings.IndexAny(s.in[s.pos:], "{[`<")
		if i < 0 {
			break
		}
		s.pos += i
		switch s.in[s.pos] {
		case '`':
			s.backtick()
		case '<':
			start := s.pos
			if s.thought() {
				s.plain.WriteString(s.in[from:start])
				from = s.pos
			}
		default:
			s.value()
		}
	}
	s.plain.WriteString(s.in[from:])
	return s
}

// backtick reads a fence or other backticks.
func (s *scan) backtick() {
	if strings.HasPrefix(s.in[s.pos:], fence) {
		s.inFence = !s.inFence
	}
	for s.pos < len(s.in) && s.in[s.pos] == '`' {
		s.pos++
	}
}

// thought skips a block of thoughts and reports whether there was one. One without an end takes the rest of the text:
// the answer never began.
func (s *scan) thought() bool {
	name, closing, size := thoughtTag(s.in[s.pos:])
	if size == 0 || closing {
		s.pos++
		return false
	}
	for s.pos += size; s.pos < len(s.in); s.pos++ {
		i := strings.Index(s.in[s.pos:], "</")
		if i < 0 {
			break
		}
		s.pos += i
		if end, closing, size := thoughtTag(s.in[s.pos:]); closing && end == name {
			s.pos += size
			return true
		}
	}
	s.pos, s.cut = len(s.in), true
	return true
}

// thoughtTag reads a tag such as <think> or </think>; size is 0 if there is no tag.
func thoughtTag(s string) (name string, closing bool, size int) {
	head, _, ok := strings.Cut(s[:min(len(s), len("</reasoning>"))], ">")
	if !ok {
		return "", false, 0
	}
	name, closing = strings.CutPrefix(head[1:], "/")
	switch name = strings.ToLower(name); name {
	case "think", "thinking", "thought", "reasoning":
		return name, closing, len(head) + 1
	}
	return "", false, 0
}

// afterThoughts returns where the answer begins in a text whose thoughts have an end tag but no start tag, as some chat
// templates produce; otherwise 0.
func afterThoughts(text string) int {
	at, open := 0, false
	for i := 0; i < len(text); i++ {
		next := strings.IndexByte(text[i:], '<')
		if next < 0 {
			break
		}
		i += next
		_, closing, size := thoughtTag(text[i:])
		switch {
		case size == 0:
		case !closing:
			open = true
		case open:
			open = false
		default:
			at = i + size
		}
	}
	return at
}

// value reads the object or array at pos.
func (s *scan) value() {
	start := s.pos
	p := parser{in: s.in, pos: start}
	err := p.value()
	s.budget -= p.pos - start + 1
	var syntax *syntaxError
	switch {
	case err == nil:
		s.pos = p.pos
		s.found = append(s.found, candidate{json: p.out, fenced: s.inFence})
		if len(s.found) > maxFound {
			s.found = s.found[1:]
		}
	case errors.As(err, &syntax):
		if s.syntax == nil || p.members > s.members {
			s.syntax, s.members = syntax, p.members
		}
		s.pos = start + 1
		if p.members > 0 {
			s.pos = s.skipBroken(syntax)
		}
	default:
		s.pos, s.cut = len(s.in), true
		if p.closable {
			s.almost = append(p.out, '}')
		}
	}
}

// skipBroken returns where a value with a syntax error ends, by its brackets: values inside it are not answers.
func (s *scan) skipBroken(e *syntaxError) int {
	depth := e.depth
	for i := e.at; i < len(s.in); i++ {
		switch s.in[i] {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case '`':
			if strings.HasPrefix(s.in[i:], fence) {
				return i
			}
		}
		if depth <= 0 {
			return i + 1
		}
	}
	return len(s.in)
}

// bare returns the text outside thoughts without the usual wrapping of a single word: a fence, backticks, asterisks.
func (s *scan) bare() string {
	text := strings.TrimSpace(s.plain.String())
	if _, after, ok := strings.Cut(text, fence); ok {
		if body, _, ok := strings.Cut(after, fence); ok {
			if tag, rest, ok := strings.Cut(body, "\n"); ok && !strings.ContainsAny(strings.TrimSpace(tag), " \t\"'") {
				body = rest
			}
			text = strings.TrimSpace(body)
		}
	}
	for _, wrap := range []string{"**", "`"} {
		if len(text) > 2*len(wrap) && strings.HasPrefix(text, wrap) && strings.HasSuffix(text, wrap) {
			text = strings.TrimSpace(text[len(wrap) : len(text)-len(wrap)])
		}
	}
	return text
}
