package bulk

import (
	"errors"
	"io"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"parley/world"
)

// TestScanIsStrict checks that what scan reads is what a strict decoder reads, for lines and for lines
// with a wrong byte.
func TestScanIsStrict(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		`{"id":"q1","prompt":"say \"hi\"\n","system":"é","model":"a/b","max_tokens":12,"temperature":0.5}`,
		`{"id":7,"messages":[{"role":"user","content":"hi"}],"max_tokens":1}`,
		`{"prompt":"hi","promt":"ho"}`, `{"prompt":null,"id":null}`, `{"prompt":"a","prompt":"b"} x`,
	} {
		for i := range len(line) {
			for _, c := range []string{line[i : i+1], "", "\\", `"`, "{", "}", "[", "]", ",", "0", "-", ".", "A", "n", "\xff", " ", "1e2"} {
				b := []byte(line[:i] + c + line[i+1:])
				var got, want RequestLine
				if !got.scan(b) {
					continue
				}
				if string(got.ID) == "null" {
					got.ID = nil
				}
				err := world.DecodeStrict(b, &want)
				if string(want.ID) == "null" {
					want.ID = nil
				}
				if err != nil || !reflect.DeepEqual(got, want) {
					t.Fatalf("scan(%s) = %+v; strictly: %+v, %v", b, got, want, err)
				}
			}
		}
	}
}

// TestWindow reads lines in any order, also some that are longer than a window.
func TestWindow(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	var offsets []int64
	var lines []string
	for i := range 60 {
		line := strings.Repeat(string(rune('a'+i%26)), i*i*i*i/10) + "\n"
		offsets, lines = append(offsets, int64(text.Len())), append(lines, line)
		text.WriteString(line)
	}
	w := &window{f: strings.NewReader(text.String()), end: int64(text.Len())}
	for _, i := range rand.New(rand.NewPCG(1, 1)).Perm(len(lines)) {
		if got, err := w.line(offsets[i]); err != nil || string(got) != lines[i] {
			t.Fatalf("line %d is %d bytes, %v; want %d", i, len(got), err, len(lines[i]))
		}
	}
	w = &window{f: strings.NewReader("no newline"), end: 10}
	if got, err := w.line(3); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a line without an end is %q, %v", got, err)
	}
}
