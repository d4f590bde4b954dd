package sse

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
)

func collect(r io.Reader, limit int64) (events []string, err error) {
	_, err = Read(bufio.NewReaderSize(r, 16), limit, func() {}, func(e Event) (bool, error) {
		events = append(events, string(e.Name)+"|"+string(e.Data))
		return string(e.Data) == "END", nil
	})
	return events, err
}

func TestReadEvents(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, in string
		want     []string
	}{
		{"plain", "data: a\n\ndata: b\n\n", []string{"|a", "|b"}},
		{"named", "event: x\ndata: a\n\ndata: b\n\n", []string{"x|a", "|b"}},
		{"CRLF", "event: x\r\ndata: a\r\n\r\ndata: b\r\n\r\n", []string{"x|a", "|b"}},
		{"CR", "data: a\r\rdata: b\r\r\n", []string{"|a", "|b"}},
		{"comments", ": hi\n\n:\ndata: a\n: more\n\n", []string{"|a"}},
		{"several lines", "data: a\ndata: b\n\n", []string{"|a\nb"}},
		{"no space", "data:a\n\n", []string{"|a"}},
		{"two spaces", "data:  a\n\n", []string{"| a"}},
		{"empty data", "data\n\ndata:\n\n", []string{"|", "|"}},
		{"mark", "\xef\xbb\xbfdata: a\n\n", []string{"|a"}},
		{"no end", "data: a\n\ndata: b", []string{"|a", "|b"}},
		{"bare object", `{"error":1}` + "\n", []string{`|{"error":1}`}},
		{"others", "id: 7\nretry: 9\nfoo\ndata: a\n\n", []string{"|a"}},
		{"no data", "event: x\n\ndata: a\n\n", []string{"|a"}},
		{"stops", "data: END\n\ndata: b\n\n", []string{"|END"}},
		{"long", "data: " + strings.Repeat("x", 500) + "\n\n", []string{"|" + strings.Repeat("x", 500)}},
	} {
		for _, r := range []io.Reader{strings.NewReader(c.in), iotest.OneByteReader(strings.NewReader(c.in))} {
			got, err := collect(r, 1000)
			if err != nil || !reflect.DeepEqual(got, c.want) {
				t.Errorf("%s: got %q, %v; want %q", c.name, got, err, c.want)
			}
		}
	}
}

func TestReadEventsBounds(t *testing.T) {
	t.Parallel()
	if _, err := collect(strings.NewReader("data: "+strings.Repeat("x", 500)), 100); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a long line: %v", err)
	}
	if _, err := collect(strings.NewReader(strings.Repeat("data: x\n", 500)), 100); !errors.Is(err, ErrTooLarge) {
		t.Errorf("many lines: %v", err)
	}
	boom := errors.New("boom")
	if _, err := collect(iotest.ErrReader(boom), 100); !errors.Is(err, boom) {
		t.Errorf("a failing reader: %v", err)
	}
}

func FuzzReadEvents(f *testing.F) {
	f.Add("event: x\r\ndata: {\"a\":1}\r\n\r\n: c\ndata: END\n\n")
	f.Add("\r\r\n\n\rdata")
	f.Fuzz(func(t *testing.T, in string) {
		got, err := collect(strings.NewReader(in), 1<<20)
		again, _ := collect(iotest.OneByteReader(strings.NewReader(in)), 1<<20)
		if err != nil || !reflect.DeepEqual(got, again) {
			t.Errorf("%q: %q, %v; byte by byte %q", in, got, err, again)
		}
		for _, e := range got {
			if len(e) > len(in)+1 {
				t.Errorf("%q: an event is larger than what was read: %q", in, e)
			}
		}
	})
}

// TestSplitter adds a stream in pieces of every size. The events are the same, and every byte is
// returned.
func TestSplitter(t *testing.T) {
	t.Parallel()
	const stream = ": ping\n\nevent: a\r\ndata: {\"x\":1}\r\n\r\n\ndata: one\ndata: two\n\ndata:[DONE]\n\ndata: rest"
	for size := 1; size <= len(stream); size++ {
		var s Splitter
		var all bytes.Buffer
		var data []string
		for i := 0; i < len(stream); i += size {
			s.Add([]byte(stream[i:min(i+size, len(stream))]))
			for {
				raw, ok := s.Next()
				if !ok {
					break
				}
				all.Write(raw)
				if e := Parse(raw); e.Data != nil {
					data = append(data, string(e.Name)+" "+string(e.Data))
				}
			}
		}
		all.Write(s.Rest())
		if got := strings.Join(data, "|"); all.String() != stream || got != "a {\"x\":1}| one\ntwo| [DONE]" {
			t.Fatalf("size %d: %q, %q", size, got, all.String())
		}
	}
}

func FuzzSplitter(f *testing.F) {
	f.Add([]byte("data: x\n\ndata: y\r\n\r\n"), uint8(3))
	f.Fuzz(func(t *testing.T, b []byte, size uint8) {
		var s Splitter
		var all []byte
		for i := 0; i < len(b); i += int(size) + 1 {
			s.Add(b[i:min(i+int(size)+1, len(b))])
			for raw, ok := s.Next(); ok; raw, ok = s.Next() {
				Parse(raw)
				all = append(all, raw...)
			}
		}
		if all = append(all, s.Rest()...); !bytes.Equal(all, b) {
			t.Errorf("%q came back as %q", b, all)
		}
		if marks := Ends(b); len(b) > 0 && marks[len(marks)-1] != len(b) {
			t.Errorf("%q: the last event ends at %v", b, marks)
		}
	})
}
