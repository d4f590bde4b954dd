package planfile

import "strings"

// documentListed lists names for an error, up to a readable number.
func documentListed(names []string) string {
	const limit = 30
	if len(names) > limit {
		return strings.Join(names[:limit], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}
