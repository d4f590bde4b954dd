package tokens

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"io"
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
		s.seconds = llm.AddTokens(s.seconds, duration(f))
	default:
		n := pages(f.Data)
		s.Unbounded = s.Unbounded || n == 0
		s.pages = llm.AddTokens(s.pages, max(1, n))
	}
}

// Limits on what is read of a PDF to count its pages: a small file must not become a large one.
const (
	maxObjects = 8 << 20 // bytes of an object stream
	maxStreams = 4096    // object streams
)

// pages returns the number of pages of a PDF, or more; 0 if it cannot be read. Old versions of pages count too.
func pages(b []byte) int {
	n := countPages(b)
	for range maxStreams {
		_, after, found := bytes.Cut(b, []byte("/ObjStm"))
		if !found {
			return n
		}
		_, stream, found := bytes.Cut(after[:min(len(after), maxObjects)], []byte("stream"))
		if !found {
			return 0
		}
		stream = bytes.TrimPrefix(bytes.TrimPrefix(stream, []byte("\r")), []byte("\n"))
		r, err := zlib.NewReader(bytes.NewReader(stream))
		if err != nil {
			return 0 // another compression, or encrypted
		}
		objects, err := io.ReadAll(io.LimitReader(r, maxObjects+1))
		if err != nil || len(objects) > maxObjects {
			return 0
		}
		n = llm.AddTokens(n, countPages(objects))
		b = after
	}
	return 0
}

// countPages counts the objects of the type Page.
func countPages(b []byte) (n int) {
	for {
		_, after, found := bytes.Cut(b, []byte("/Type"))
		if !found {
			return n
		}
		b = after
		rest, page := bytes.CutPrefix(bytes.TrimLeft(after, " \t\r\n\f\x00"), []byte("/Page"))
		if page && (len(rest) == 0 || strings.IndexByte(" \t\r\n\f\x00/<>[]()%", rest[0]) >= 0) {
			n++
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

// slowest is the fewest bytes of a second of sound: 8 kbit/s, the lowest rate of MP3.
const slowest = 1000

// waveSeconds returns the seconds of a WAV file. Its header says how many bytes a second has.
func waveSeconds(b []byte) int {
	rate := slowest
	if at := bytes.Index(b[:min(len(b), 4096)], []byte("fmt ")); at >= 0 && len(b) >= at+20 {
		rate = int(binary.LittleEndian.Uint32(b[at+16:]))
	}
	return 1 + len(b)/max(rate, slowest)
}

// frameSeconds returns the seconds of an MP3 file, from its frames.
func frameSeconds(b []byte) int {
	if len(b) > 10 && string(b[:3]) == "ID3" { // a tag, whose size has 7 bits in a byte
		size := int(b[6]&0x7f)<<21 | int(b[7]&0x7f)<<14 | int(b[8]&0x7f)<<7 | int(b[9]&0x7f)
		b = b[min(len(b), 10+size):]
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
	return 1 + int(math.Ceil(seconds)) + odd/slowest
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
