package tokens

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"io"
	"iter"
	"math"
	"strings"

	"parley/llm"
)

// What files count as. The guesses are what most models count, and the bounds what none exceeds: a page of a PDF is read as
// text and as an image (Anthropic: 1,500 to 3,000 tokens of text, and the image; OpenAI: both; Gemini: 258 to 1,120 tokens), and
// a second of sound is 10 tokens (OpenAI), 25 or 32 (Gemini), or up to 50 (open models with Whisper's encoder).
const (
	perPage      = 2_500
	maxPerPage   = 6_000 + maxPerImage
	perSecond    = 32
	maxPerSecond = 50
)

// addFile counts a file. Where nobody can know how long it is, it counts as unbounded.
func (s *Size) addFile(f *llm.File) {
	switch {
	case len(f.Data) == 0:
		s.Unbounded = true
	case f.IsAudio():
		n := duration(f)
		s.seconds = llm.AddTokens(s.seconds, n)
		s.files = llm.AddTokens(s.files, llm.MulTokens(n, maxPerSecond))
	default:
		n, highest := pages(f.Data)
		s.Unbounded = s.Unbounded || n == 0
		s.pages = llm.AddTokens(s.pages, max(1, n))
		// A page may have any length, but most of its text is in the file.
		s.files = llm.AddTokens(s.files, max(llm.MulTokens(max(1, highest), maxPerPage), len(f.Data)))
	}
}

// Limits on what is read of a PDF to count its pages: a small file must not become a large one.
const (
	maxObjects  = 8 << 20  // bytes of an object stream
	maxInflated = 32 << 20 // bytes of all object streams
	maxStreams  = 4096     // object streams
)

// pages returns the number of pages of a PDF, old versions of pages included, and the most that the file says it has. Both are 0 if
// they cannot be read.
func pages(b []byte) (n, highest int) {
	if escapes(b) {
		return 0, 0
	}
	n, highest = countPages(b)
	left := min(maxInflated, 1<<20+32*len(b)) // object streams are rarely a tenth of their content
	for range maxStreams {
		_, after, found := bytes.Cut(b, []byte("/ObjStm"))
		if !found {
			return n, max(n, highest)
		}
		_, stream, found := bytes.Cut(after, []byte("stream"))
		if !found {
			return 0, 0
		}
		packed := bytes.NewReader(bytes.TrimPrefix(bytes.TrimPrefix(stream, []byte("\r")), []byte("\n")))
		objects, err := inflate(packed, min(left, maxObjects))
		if err != nil || escapes(objects) {
			return 0, 0 // another compression, or encrypted
		}
		left -= len(objects)
		more, says := countPages(objects)
		n, highest = llm.AddTokens(n, more), max(highest, says)
		b = stream[len(stream)-packed.Len():]
	}
	return 0, 0
}

// inflate reads a stream of at most limit bytes. It reads no byte of packed behind its end.
func inflate(packed *bytes.Reader, limit int) ([]byte, error) {
	r, err := zlib.NewReader(packed)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(r, int64(limit)+1))
	if err == nil && len(b) > limit {
		err = errTooLarge
	}
	return b, err
}

var errTooLarge = errors.New("the object streams are too large")

// escapes reports whether a name in b hides letters, as /P#61ge does, which no program needs.
func escapes(b []byte) bool {
	for at := 0; ; at++ {
		next := bytes.IndexByte(b[at:], '#')
		if next < 0 {
			return false
		}
		at += next
		if at+2 >= len(b) || b[at+1] < '4' || b[at+1] > '7' || strings.IndexByte("0123456789abcdefABCDEF", b[at+2]) < 0 {
			continue
		}
		name := bytes.TrimRightFunc(b[max(0, at-maxName):at], isLetter)
		if len(name) > 0 && name[len(name)-1] == '/' {
			return true
		}
	}
}

// maxName is the longest of the names that are looked for.
const maxName = 8

func isLetter(r rune) bool { return r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' }

// countPages counts the objects of the type Page, and returns the highest count that b says.
func countPages(b []byte) (n, highest int) {
	for rest := range behind(b, "/Type") {
		rest, page := bytes.CutPrefix(rest, []byte("/Page"))
		if page && (len(rest) == 0 || strings.IndexByte(" \t\r\n\f\x00/<>[]()%", rest[0]) >= 0) {
			n++
		}
	}
	for rest := range behind(b, "/Count") {
		says := 0
		for i := 0; i < min(len(rest), 9) && rest[i] >= '0' && rest[i] <= '9'; i++ {
			says = 10*says + int(rest[i]-'0')
		}
		highest = max(highest, says)
	}
	return n, highest
}

// behind iterates over what follows each name in b and the space behind it.
func behind(b []byte, name string) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for {
			_, after, found := bytes.Cut(b, []byte(name))
			if !found || !yield(bytes.TrimLeft(after, " \t\r\n\f\x00")) {
				return
			}
			b = after
		}
	}
}

// duration returns the seconds of a recording, rounded up. What it cannot read counts as the slowest speech there is.
func duration(f *llm.File) int {
	if f.Format() == "wav" {
		return waveSeconds(f.Data)
	}
	return frameSeconds(f.Data)
}

// minBytesPerSecond is the fewest bytes of a second of sound: 8 kbit/s, the lowest rate of MP3.
const minBytesPerSecond = 1000

// waveSeconds returns the seconds of a WAV file. Its header says how many bytes a second has.
func waveSeconds(b []byte) int { return 1 + len(b)/max(waveRate(b), minBytesPerSecond) }

// waveRate returns the bytes of a second of a WAV file: the fewest that its header allows. It returns 0 if the header is odd.
func waveRate(b []byte) int {
	chunk := b[min(len(b), 12):]
	for range 64 {
		if len(chunk) < 8 {
			return 0
		}
		size := int64(binary.LittleEndian.Uint32(chunk[4:]))
		if string(chunk[:4]) == "fmt " {
			break
		}
		chunk = chunk[min(int64(len(chunk)), 8+size+size&1):]
	}
	if len(chunk) < 24 || string(chunk[:4]) != "fmt " {
		return 0
	}
	short := func(at int) int { return int(binary.LittleEndian.Uint16(chunk[at:])) }
	long := func(at int) int { return int(binary.LittleEndian.Uint32(chunk[at:])) }
	samples, perSample := long(12), min(short(20), short(10)*short(22)/8)
	switch short(8) {
	case 1, 3, 6, 7, 0xfffe: // PCM, floating point, A-law, µ-law, or one of these
	default:
		return 0 // compressed
	}
	if samples > 192_000 || perSample > 64 {
		return 0
	}
	return min(long(16), samples*perSample)
}

// frameSeconds returns the seconds of an MP3 file, from its frames.
func frameSeconds(b []byte) int {
	if len(b) > 10 && string(b[:3]) == "ID3" && max(b[6], b[7], b[8], b[9]) < 0x80 { // a tag, whose size has 7 bits in a byte
		if size := 10 + (int(b[6])<<21 | int(b[7])<<14 | int(b[8])<<7 | int(b[9])); size <= len(b) {
			b = b[size:]
		}
	}
	seconds, odd := 0.0, 0
	for len(b) >= 4 {
		size, lasts := frame(b)
		if size == 0 || size > len(b) {
			b = b[1:]
			odd++
			continue
		}
		seconds += lasts
		b = b[size:]
	}
	return 1 + int(math.Ceil(seconds)) + odd/minBytesPerSecond
}

// frame returns the bytes of the frame of layer 3 at the beginning of b, and how long it lasts. The size is 0 if there is
// none.
func frame(b []byte) (size int, seconds float64) {
	if b[0] != 0xff || b[1]&0xe6 != 0xe2 {
		return 0, 0
	}
	first := []int{0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 0}
	later := []int{0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160, 0}
	rates := []int{44100, 48000, 32000, 0}
	version, rate := b[1]>>3&3, rates[b[2]>>2&3]
	kbits, samples := later[b[2]>>4], 576
	switch version {
	case 3: // MPEG 1
		kbits, samples = first[b[2]>>4], 1152
	case 2:
		rate /= 2
	case 0: // 2.5
		rate /= 4
	default:
		return 0, 0
	}
	if kbits == 0 || rate == 0 {
		return 0, 0
	}
	return samples/8*kbits*1000/rate + int(b[2]>>1&1), float64(samples) / float64(rate)
}
