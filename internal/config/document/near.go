package document

import (
	"strings"

	"parley/internal/near"
)

// Suggestion returns "; did you mean x?" for the nearest of names, or "".
func Suggestion(name string, names []string) string {
	if n := near.Name(name, names); n != "" {
		return "; did you mean " + n + "?"
	}
	return ""
}

// Listed lists names for an error, up to a readable number.
func Listed(names []string) string {
	const limit = 30
	if len(names) > limit {
		return strings.Join(names[:limit], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}
