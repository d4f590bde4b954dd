package document

import "strings"

// Listed lists names for an error, up to a readable number.
func Listed(names []string) string {
	const limit = 30
	if len(names) > limit {
		return strings.Join(names[:limit], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}
