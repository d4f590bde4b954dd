package config

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"unicode/utf8"

	inputs "parley/internal/files"
	"parley/internal/near"
)

// maxSize bounds a plan file. Far above any real plan; it keeps a wrong file (a run
// file, a data set) from being read as one.
const maxSize = 1 << 20

// maxText bounds a file that params name and a kind reads as text, such as a set of
// problems.
const maxText = 64 << 20

// source is the text of a plan file.
type source struct {
	name    string
	text    string
	secrets []string // what errors must not show

	recorded bool // it is no file, but the plan of a run
	beside   bool // it is no plan, but a file that one names
}

// line returns a line of the text, from 1. It is for errors: a text of nothing but line ends
// would take many times its size, split.
func (s *source) line(n int) (string, bool) {
	for line := range strings.SplitSeq(s.text, "\n") {
		if n--; n == 0 {
			return line, true
		}
	}
	return "", false
}

// begin says how to come by a plan, where one is wanted.
func (s *source) begin() string {
	if s.beside {
		return ""
	}
	return "; `parley init KIND` writes a plan to begin with"
}

// read reads the file at path, or says why it cannot be what is wanted: a plan file. Of a file that is larger
// than most it reads enough to tell.
func read(ctx context.Context, path, what string, most int64) (b []byte, err error) {
	f, err := inputs.Open(path)
	if err == nil {
		b, err = io.ReadAll(io.LimitReader(inputs.Reader(ctx, f), most+1))
		err = errors.Join(err, f.Close())
	}
	if err == nil {
		return b, nil
	}
	fail := func(format string, args ...any) error {
		return Errors{{File: path, Problem: fmt.Sprintf(format, args...)}}
	}
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		err = pe.Err
	}
	info, statErr := os.Stat(path)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.Is(err, fs.ErrNotExist):
		return nil, fail("there is no such file%s", meantPath(path))
	case errors.Is(err, inputs.ErrNotRegular) && statErr == nil && info.IsDir():
		return nil, fail("is a directory: name the %s in it", what)
	case errors.Is(err, inputs.ErrNotRegular):
		return nil, fail("%s: name a %s", strings.TrimPrefix(err.Error(), path+": "), what)
	default:
		return nil, fail("cannot be read: %v", err)
	}
}

// meantPath asks whether another file was meant, if one has a name like it.
func meantPath(path string) string {
	if n := near.Path(path); n != "" {
		return "; did you mean " + n + "?"
	}
	return ""
}

// newSource makes a source of a plan's bytes. What is wrong with them as a text goes to the
// report.
func newSource(name string, b []byte) *report { return newText(&source{name: name}, b, maxSize) }

// newText puts at most so many bytes into a source.
func newText(src *source, b []byte, most int) *report {
	rep := &report{src: src}
	switch {
	case bytes.HasPrefix(b, []byte("SQLite format 3\x00")):
		rep.add(place{}, nil, "is a run file, not a plan: `parley resume` resumes it, `parley show` shows it")
		return rep
	case len(b) > most:
		rep.add(place{}, nil, "is larger than %s: is it the right file?", inputs.Size(int64(most)))
		return rep
	case bytes.HasPrefix(b, []byte{0xFF, 0xFE}), bytes.HasPrefix(b, []byte{0xFE, 0xFF}):
		rep.add(place{}, nil, "is UTF-16: save it as UTF-8")
		return rep
	case binary(b):
		rep.add(place{}, nil, "is no text: it must be UTF-8 text%s", src.begin())
		return rep
	}
	b = bytes.TrimPrefix(b, []byte("\uFEFF"))
	src.text = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(strings.ToValidUTF8(string(b), "\uFFFD"))
	src.conceal(secretsIn(src.text))
	if i := notText(b); i >= 0 {
		line, column := 1+bytes.Count(b[:i], []byte("\n")), 1+utf8.RuneCount(b[bytes.LastIndexByte(b[:i], '\n')+1:i])
		what := fmt.Sprintf("the control character 0x%02x", b[i])
		if b[i] >= utf8.RuneSelf {
			what = fmt.Sprintf("the byte 0x%02x, which is not UTF-8", b[i])
		}
		src.conceal(secretsGuessed(src.text))
		rep.add(place{line: line, column: column}, nil, "holds %s: it must be UTF-8 text", what)
		return rep
	}
	return rep
}

// binary says whether b is no text at all, rather than a text with a slip in it.
func binary(b []byte) bool {
	b = b[:min(len(b), 1024)]
	strange := 0
	for len(b) > 0 {
		i := notText(b)
		if i < 0 {
			break
		}
		strange++
		b = b[i+1:]
	}
	return strange > 50
}

// notText returns where b stops being UTF-8 text, or -1.
func notText(b []byte) int {
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 || r < ' ' && r != '\n' && r != '\t' && r != '\r' || r == 0x7F {
			return i
		}
		i += n
	}
	return -1
}
