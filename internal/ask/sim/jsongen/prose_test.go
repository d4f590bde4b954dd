package jsongen

import (
	"math/rand/v2"
	"strings"
	"testing"
)

func proseRand(n uint64) *rand.Rand { return rand.New(rand.NewPCG(n, 1)) }

func TestAppendText(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for i := range uint64(300) {
		l := NewLexicon()
		a, b := l.AppendText(nil, proseRand(i), "treaty", 200), l.AppendText(nil, proseRand(i), "treaty", 200)
		if string(a) != string(b) {
			t.Fatal("the same generator wrote two texts")
		}
		s := string(a)
		if !strings.Contains(strings.ToLower(s), "treaty") || len(s) < 200 || len(s) > 400 || !strings.HasSuffix(s, ".") {
			t.Errorf("%d: %q", i, s)
		}
		seen[s] = true
	}
	if len(seen) < 299 {
		t.Errorf("%d different texts of 300", len(seen))
	}
}

func TestTopic(t *testing.T) {
	t.Parallel()
	cases := map[string]string{
		"":                     "",
		"a b c":                "",
		"tell me of Burgundy!": "Burgundy",
		"\xff\xfe???":          "",
		"日本語":                  "",
	}
	for text, want := range cases {
		if got := Topic(proseRand(1), text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	if got := Topic(proseRand(1), strings.Repeat("armies march ", 1000)); got != "armies" {
		t.Errorf("got %q", got)
	}
}
