package terminal

import "testing"

func TestSafe(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"plain é 漢\n\ttext":       "plain é 漢\n\ttext",
		"\x1b]0;owned\a":          `\u001b]0;owned\u0007`,
		"abc\u202edcba":           `abc\u202edcba`,
		"in\u200bvisible":         `in\u200bvisible`,
		"tag\U000e0041\U000e007f": `tag\U000e0041\U000e007f`,
		"👩\u200d🚀":                "👩\u200d🚀", // text needs joiners
		"\xff":                    `\xff`,
	} {
		if got := Safe(text); got != want {
			t.Errorf("%+q: got %q, want %q", text, got, want)
		}
	}
}
