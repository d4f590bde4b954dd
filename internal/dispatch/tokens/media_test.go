package tokens

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"parley/llm"
	"parley/llm/llmtest"
)

// packed returns a PDF whose pages are in an object stream, as most programs write them.
func packed(t testing.TB, objects string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zlib.NewWriter(&b)
	if _, err := z.Write([]byte(objects)); err != nil || z.Close() != nil {
		t.Fatal(err)
	}
	return fmt.Appendf(nil, "%%PDF-1.5\n1 0 obj\n<</Type /ObjStm /N 3 /First 9 /Length %d /Filter /FlateDecode>>\nstream\r\n%s\nendstream\nendobj\n", b.Len(), b.Bytes())
}

func TestPages(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		pdf  []byte
		want int
	}{
		"plain":       {[]byte(llmtest.PDF), 1},
		"packed":      {packed(t, "<</Type /Page>> <</Type/Pages/Count 2>> <</Type\n/Page\n/Parent 1 0 R>>"), 2},
		"no pages":    {[]byte("%PDF-1.4"), 0},
		"other types": {[]byte("%PDF-1.4 /Type/PageLabel /Type /Pages"), 0},
		"encrypted":   {[]byte("%PDF-1.5 /Type/Page /Type/ObjStm stream\nnonsense"), 0},
		"cut off":     {packed(t, strings.Repeat("<</Type/Page>>", 99))[:80], 0},
		"a bomb":      {packed(t, strings.Repeat("/Type/Page ", 1<<20)), 0},
	} {
		if got := pages(c.pdf); got != c.want {
			t.Errorf("%s: %d pages, want %d", name, got, c.want)
		}
	}
}

// mp3 returns frames of 128 kbit/s at 44,100 Hz: 417 bytes each, 26 milliseconds.
func mp3(frames int) []byte {
	one := make([]byte, 417)
	copy(one, "\xff\xfb\x90\x00")
	return append([]byte("ID3\x04\x00\x00\x00\x00\x00\x05tagged"[:15]), bytes.Repeat(one, frames)...)
}

func TestDuration(t *testing.T) {
	t.Parallel()
	wav := append([]byte(llmtest.WAV), make([]byte, 16_000*3)...)
	slow := []byte(llmtest.WAV)
	binary.LittleEndian.PutUint32(slow[28:], 1)
	for name, c := range map[string]struct {
		media string
		data  []byte
		want  int
	}{
		"wav":              {llm.MediaWAV, wav, 4},
		"wav that lies":    {llm.MediaWAV, append(slow, make([]byte, 2000)...), 3},
		"wav without head": {llm.MediaWAV, []byte("RIFF"), 1},
		"mp3":              {llm.MediaMP3, mp3(400), 12}, // 10.4 seconds
		"mp3 with a gap":   {llm.MediaMP3, append(mp3(4), make([]byte, 5000)...), 6},
		"no mp3":           {llm.MediaMP3, nil, 1},
	} {
		if got := duration(&llm.File{MediaType: c.media, Data: c.data}); got != c.want {
			t.Errorf("%s: %d seconds, want %d", name, got, c.want)
		}
	}
}

// TestFiles checks that files count in guesses and bounds, and that nothing is learned from their tokens.
func TestFiles(t *testing.T) {
	t.Parallel()
	ask := func(f *llm.File) *llm.Request {
		return &llm.Request{Model: "p/m", Messages: []llm.Message{{Role: llm.RoleUser, Parts: []llm.Part{{Text: "What?"}, {File: f}}}}}
	}
	text := SizeOf(ask(nil)).Bound()
	e := NewEstimator()
	for name, c := range map[string]struct {
		file      *llm.File
		low, high int
		unbounded bool
	}{
		"a page":      {&llm.File{MediaType: llm.MediaPDF, Data: []byte(llmtest.PDF)}, perPage, maxPerPage, false},
		"not a PDF":   {&llm.File{MediaType: llm.MediaPDF, Data: []byte("?")}, perPage, maxPerPage, true},
		"a link":      {&llm.File{MediaType: llm.MediaPDF, URL: "https://x/a.pdf"}, 0, 0, true},
		"ten seconds": {&llm.File{MediaType: llm.MediaMP3, Data: mp3(400)}, 12 * perSecond, 12 * maxPerSecond, false},
	} {
		req := ask(c.file)
		size := SizeOf(req)
		input, _ := e.Guess(req, size)
		if size.Bound() != text+c.high || int(input) < c.low || int(input) > c.low+10 || size.Unbounded != c.unbounded || !size.HasFiles() {
			t.Errorf("%s: guess %v, bound %d: %+v", name, input, size.Bound(), size)
		}
		e.Learn(req, size, llm.Usage{Input: 99_999, Output: 1})
	}
	if k := e.Known()["p/m"]; k.PerByte != guessPerByte {
		t.Errorf("learned %v tokens per byte", k.PerByte)
	}
}

func FuzzFiles(f *testing.F) {
	f.Add([]byte(llmtest.PDF))
	f.Add([]byte(llmtest.WAV))
	f.Add(mp3(3))
	f.Add(packed(f, "/Type/Page"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if n := pages(b); n < 0 {
			t.Errorf("%d pages", n)
		}
		for _, media := range []string{llm.MediaWAV, llm.MediaMP3} {
			if n := duration(&llm.File{MediaType: media, Data: b}); n < 1 || n > 2+len(b) {
				t.Errorf("%d seconds of %d bytes", n, len(b))
			}
		}
	})
}
