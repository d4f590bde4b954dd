package text_test

import (
	"strings"
	"testing"

	"parley/internal/kit/text"
)

func TestExcerpt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want string }{
		{"", ""}, {"abc", "abc"}, {"abcd", "abc…"}, {"éée", "éée"}, {"éééé", "ééé…"}, {"\xff\xff\xff\xff", "\xff\xff\xff…"},
		{strings.Repeat("a", 1e6), "aaa…"},
	} {
		if got := text.Excerpt(c.text, 3); got != c.want {
			t.Errorf("%.10q: %q, want %q", c.text, got, c.want)
		}
		if got := text.Excerpt([]byte(c.text), 3); got != c.want {
			t.Errorf("bytes of %.10q: %q, want %q", c.text, got, c.want)
		}
	}
}
