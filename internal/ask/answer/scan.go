package answer

import (
	"errors"
	"strings"
)

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
