package chart

import "strings"

// closed reports whether everything that a style sheet opens is closed in order, so that it stays inside a block that it
// is put into. Browsers find the end of a block in the same way: brackets of other kinds, strings and comments are skipped
// as wholes. A sheet has no backslashes: see selfContained.
func closed(sheet string) bool {
	if strings.Contains(sheet, "<") || !plainURLs(strings.ToLower(sheet)) {
		return false
	}
	var open []byte
	for i := 0; i < len(sheet); i++ {
		switch c := sheet[i]; c {
		case '{', '(', '[':
			open = append(open, c)
		case '}', ')', ']':
			pairs := map[byte]byte{'}': '{', ')': '(', ']': '['}
			if len(open) == 0 || open[len(open)-1] != pairs[c] {
				return false
			}
			open = open[:len(open)-1]
		case '"', '\'':
			n := strings.IndexAny(sheet[i+1:], string(c)+"\n\r\f")
			if n < 0 || sheet[i+1+n] != c {
				return false // a string ends with its line
			}
			i += 1 + n
		case '/':
			if !strings.HasPrefix(sheet[i:], "/*") {
				continue
			}
			n := strings.Index(sheet[i+2:], "*/")
			if n < 0 {
				return false
			}
			i += n + 3
		}
	}
	return len(open) == 0
}

// plainURLs reports whether every url() is closed at once: what is inside one is not read as brackets and strings.
func plainURLs(sheet string) bool {
	for i, rest := range strings.Split(sheet, "url(") {
		if name, _, ok := strings.Cut(strings.TrimPrefix(rest, "#"), ")"); i > 0 && (!ok || !plainName(name)) {
			return false
		}
	}
	return true
}
