package answer

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

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
			p.out = appendQuoted(p.out, b.String())
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

// appendQuoted appends s as a JSON string.
func appendQuoted(b []byte, s string) []byte {
	b = append(b, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c == '\n':
			b = append(b, '\\', 'n')
		case c == '\t':
			b = append(b, '\\', 't')
		case c < 0x20:
			const hex = "0123456789abcdef"
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}

// quoted quotes at most n bytes of s on one line, for an error.
func quoted(s string, n int) string {
	if s == "" {
		return "nothing"
	}
	return strconv.Quote(clip(s, n))
}

// clip cuts s to at most n bytes and an ellipsis, at a rune boundary.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}
