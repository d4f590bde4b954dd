package terminal

import (
	"bytes"
	"testing"
)

// TestFitting checks that the first parts are kept, and that the first is cut only if nothing fits.
func TestFitting(t *testing.T) {
	t.Parallel()
	parts := []string{"12 of 100 episodes", "1m30s left", "$0.01 of $5.00", "24 in flight", "1,200 calls/s"}
	for width, want := range map[int]string{
		200: "12 of 100 episodes, 1m30s left, $0.01 of $5.00, 24 in flight, 1,200 calls/s",
		60:  "12 of 100 episodes, 1m30s left, $0.01 of $5.00, 24 in flight",
		45:  "12 of 100 episodes, 1m30s left, 24 in flight",
		18:  "12 of 100 episodes",
		10:  "12 of 100…",
		1:   "…",
	} {
		if got := fitting(parts, width); got != want {
			t.Errorf("%d: %q, want %q", width, got, want)
		}
	}
	if got := fitting([]string{"a\x1b[2J", "b"}, 40); got != `a\u001b[2J, b` {
		t.Errorf("%q", got)
	}
}

// TestWidthIsThatOfTheMoment checks that a wider window shows more.
func TestWidthIsThatOfTheMoment(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	width := 20
	view := NewStream(&out, func(string) (string, bool) { return "", false }, func(any) int { return width })
	view.Refresh([]string{"twelve episodes", "one minute left"})
	width = 60
	view.Refresh([]string{"twelve episodes", "one minute left"})
	if want := Wipe + "twelve episodes" + Wipe + "twelve episodes, one minute left"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}
