package planfile

import (
	"strings"
	"unicode"
)

// isAgentName reports whether a name works in labels, in keys of overrides and on command lines.
func isAgentName(name string) bool { return isName(name, ".@+/-") }

// isTagName reports whether a name works in --by and as the head of a column.
func isTagName(name string) bool { return isName(name, "-") }

// isName reports whether a name consists of at most 64 letters, digits and _, or of others after the first. A regular expression that
// counts to 64 would take several megabytes and a tenth of the time in which the program starts.
func isName(name, others string) bool {
	n := 0
	for _, c := range name {
		if !unicode.IsLetter(c) && !unicode.IsNumber(c) && c != '_' && (n == 0 || !strings.ContainsRune(others, c)) {
			return false
		}
		n++
	}
	return n > 0 && n <= 64
}
