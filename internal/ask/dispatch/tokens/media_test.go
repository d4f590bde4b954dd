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
		"escaped":     {[]byte("%PDF-1.4 /Type/Page /Type/P#61ge"), 0},
		"escaped key": {packed(t, "<</Type/Page>> <</#54ype/Page>>"), 0},
		"a sharp":     {[]byte("%PDF-1.4 /Type/Page /F#20ont /C#C3 #61 x#61"), 1},
		"two streams": {append(packed(t, "<</Type/Page>>"), packed(t, "<</Type/Page>>")...), 2},
		"cut off":     {packed(t, strings.Repeat("<</Type/Page>>", 99))[:80], 0},
		"a bomb":      {packed(t, strings.Repeat("/Type/Page ", 1<<20)), 0},
	} {
		if got, _ := pages(c.pdf); got != c.want {
			t.Errorf("%s: %d pages, want %d", name, got, c.want)
		}
	}
	for pdf, want := range map[string]int{
		"/Type/Page /Count 300": 300, "/Type/Page /Type/Page /Count\n1": 2, "/Type/Page /Count 99999999999": 999_999_999, "/Type/Page /Count -7": 1,
	} {
		if n, highest := pages([]byte(pdf)); n > 2 || highest != want {
			t.Errorf("%s: %d pages, at most %d, want %d", pdf, n, highest, want)
		}
	}
}

// TestInflatedOnce: a stream is read once, however often it is announced, and all of them have one limit.
func TestInflatedOnce(t *testing.T) {
	t.Parallel()
	full := strings.Repeat(" ", 7<<20)
	bomb := append(bytes.Repeat([]byte("/ObjStm "), 4000), packed(t, full+"/Type/Page")...)
	if n, _ := pages(bomb); n != 0 { // 7 MiB of 40 KB
		t.Errorf("%d pages", n)
	}
	padded := append(make([]byte, 1<<20), bomb...)
	if n, _ := pages(padded); n != 1 {
		t.Errorf("%d pages, want 1", n)
	}
	for range 4 {
		padded = append(padded, packed(t, full)...)
	}
	if n, _ := pages(padded); n != 0 { // 35 MiB
		t.Errorf("%d pages", n)
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
	hurried := func(at int, v uint32) []byte {
		b := bytes.Clone(wav)
		binary.LittleEndian.PutUint32(b[at:], v)
		return b
	}
	for name, c := range map[string]struct {
		media string
		data  []byte
		want  int
	}{
		"wav":              {llm.MediaWAV, wav, 4},
		"wav that lies":    {llm.MediaWAV, append(slow, make([]byte, 2000)...), 3},
		"wav that hurries": {llm.MediaWAV, hurried(28, 0xffffffff), 4},
		"wav of any rate":  {llm.MediaWAV, hurried(24, 0xffffffff), 49},
		"wav of any width": {llm.MediaWAV, hurried(32, 0xffffffff), 49},
		"wav of a codec":   {llm.MediaWAV, hurried(20, 0x00010055), 49},
		"wav with a decoy": {llm.MediaWAV, append([]byte("RIFF....WAVELIST\x18\x00\x00\x00fmt \x10\x00\x00\x00\x01\x00\x01\x00\x80\xbb\x00\x00\x80\xbb\x00\x00\x01\x00\x08\x00fmt "), wav[16:]...), 4},
		"wav without head": {llm.MediaWAV, []byte("RIFF"), 1},
		"mp3":              {llm.MediaMP3, mp3(400), 12}, // 10.4 seconds
		"mp3 with a gap":   {llm.MediaMP3, append(mp3(4), make([]byte, 5000)...), 6},
		"no mp3":           {llm.MediaMP3, nil, 1},
		"mp3 all a tag":    {llm.MediaMP3, append([]byte("ID3\x04\x00\x00\x7f\x7f\x7f\x7f"), make([]byte, 5000)...), 6},
		"mp3, odd tag":     {llm.MediaMP3, append([]byte("ID3\x04\x00\x00\x80\x80\xa7\x80"), make([]byte, 5000)...), 6},
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
	text := SizeOf(ask(nil)).Bound(0)
	e := NewEstimator()
	for name, c := range map[string]struct {
		file      *llm.File
		low, high int
		unbounded bool
	}{
		"a page":      {&llm.File{MediaType: llm.MediaPDF, Data: []byte(llmtest.PDF)}, perPage, maxPerPage, false},
		"a long page": {&llm.File{MediaType: llm.MediaPDF, Data: append([]byte(llmtest.PDF), make([]byte, 50_000-len(llmtest.PDF))...)}, perPage, 50_000, false},
		"not a PDF":   {&llm.File{MediaType: llm.MediaPDF, Data: []byte("?")}, perPage, maxPerPage, true},
		"a link":      {&llm.File{MediaType: llm.MediaPDF, URL: "https://x/a.pdf"}, 0, 0, true},
		"ten seconds": {&llm.File{MediaType: llm.MediaMP3, Data: mp3(400)}, 12 * perSecond, 12 * maxPerSecond, false},
	} {
		req := ask(c.file)
		size := SizeOf(req)
		input, _ := e.Guess(req, size)
		if size.Bound(0) != text+c.high || size.Bound(9000) != min(text+c.high, 9000) || int(input) < c.low || int(input) > c.low+10 || size.Unbounded != c.unbounded || !size.HasFiles() {
			t.Errorf("%s: guess %v, bound %d: %+v", name, input, size.Bound(0), size)
		}
		e.Learn(req, size, llm.Usage{Input: 99_999, Output: 1})
	}
	if g := e.models["p/m"]; g == nil || g.perByte != guessPerByte {
		t.Errorf("learned %+v", g)
	}
}

func FuzzFiles(f *testing.F) {
	f.Add([]byte(llmtest.PDF))
	f.Add([]byte(llmtest.WAV))
	f.Add(mp3(3))
	f.Add(packed(f, "/Type/Page"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if n, highest := pages(b); n < 0 || highest < n {
			t.Errorf("%d pages, at most %d", n, highest)
		}
		for _, media := range []string{llm.MediaWAV, llm.MediaMP3} {
			if n := duration(&llm.File{MediaType: media, Data: b}); n < 1 || n > 2+len(b) {
				t.Errorf("%d seconds of %d bytes", n, len(b))
			}
		}
	})
}
