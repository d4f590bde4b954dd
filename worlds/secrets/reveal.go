package secrets

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// How a secret was given away.
const (
	Said    = "said"    // as a word
	Spelled = "spelled" // letter by letter: t-i-g-e-r
)

// reveals says how a text gives a secret away, or "". It does when the secret stands in
// it as a word of its own, whatever its case, accents and surroundings; or letter by
// letter, with anything but letters between. Part of a longer word is not enough.
func reveals(text, secret string) string {
	said, want := wordsOf(text), wordsOf(secret)
	if len(want) == 0 {
		return ""
	}
	if unspaced(secret) {
		if strings.Contains(strings.Join(said, ""), strings.Join(want, "")) {
			return Said
		}
		return ""
	}
	for i := range said {
		if len(said)-i >= len(want) && slices.Equal(said[i:i+len(want)], want) {
			return Said
		}
	}
	if strings.Contains(spelled(said), strings.Join(want, "")) {
		return Spelled
	}
	return ""
}

// spelled joins each run of single letters, and puts a space between runs.
func spelled(said []string) string {
	var b strings.Builder
	for _, w := range said {
		if utf8.RuneCountInString(w) == 1 {
			b.WriteString(w)
			continue
		}
		b.WriteByte(' ')
	}
	return b.String()
}
