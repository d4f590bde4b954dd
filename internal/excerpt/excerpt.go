// Package excerpt shortens texts for errors and pages.
package excerpt

// Of returns the first characters of a text, at most limit, and "…" if there are more.
func Of[T ~string | ~[]byte](text T, limit int) string {
	n := 0
	for i := range string(text) {
		if n == limit {
			return string(text[:i]) + "…"
		}
		n++
	}
	return string(text)
}
