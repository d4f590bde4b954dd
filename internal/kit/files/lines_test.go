package files

import (
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestLines reads lines in any order, also some that are longer than what is read at once.
func TestLines(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	var offsets []int64
	var lines []string
	for i := range 60 {
		line := strings.Repeat(string(rune('a'+i%26)), i*i*i*i/10) + "\n"
		offsets, lines = append(offsets, int64(text.Len())), append(lines, line)
		text.WriteString(line)
	}
	w := NewLines(strings.NewReader(text.String()), int64(text.Len()))
	for _, i := range rand.New(rand.NewPCG(1, 1)).Perm(len(lines)) {
		if got, err := w.At(offsets[i]); err != nil || string(got) != lines[i] {
			t.Fatalf("line %d is %d bytes, %v; want %d", i, len(got), err, len(lines[i]))
		}
	}
	w = NewLines(strings.NewReader("no newline"), 10)
	if got, err := w.At(3); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a line without an end is %q, %v", got, err)
	}
}
