// Part excerpt shortens texts for errors and pages.

package text

// Excerpt returns the first characters of a text, at most limit, and "…" if there are more.
func Excerpt[T ~string | ~[]byte](text T, limit int) string {
	n := 0
	for i := range string(text) {
		if n == limit {
			return string(text[:i]) + "…"
		}
		n++
	}
	return string(text)
}
