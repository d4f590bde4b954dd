package planfile

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

	"parley/internal/kit/files"
	"parley/internal/kit/yamltree"
)

// MaxSize is the largest plan file. It keeps a wrong file, such as a run file, from being parsed.
const MaxSize = 1 << 20

// maxText is the largest text file that params may name, such as a set of problems.
const maxText = 64 << 20

// source is the text of a plan file.
type source struct {
	Name    string
	Text    string
	Secrets []string // hidden in errors

	Recorded bool // the plan of a run, not a file
	Beside   bool // a file that a plan names, not a plan
}

// line returns a line of the text, counted from 1. It does not split the text, which could take many
// times its size.
func (s *source) line(n int) (string, bool) {
	for line := range strings.SplitSeq(s.Text, "\n") {
		if n--; n == 0 {
			return line, true
		}
	}
	return "", false
}

// begin suggests how to get a plan.
func (s *source) begin() string {
	if s.Beside {
		return ""
	}
	return "; `parley init KIND` writes a plan to begin with"
}

// readDocument reads at most limit+1 bytes of the file at path. what describes the wanted file for errors.
func readDocument(ctx context.Context, path, what string, limit int64) (b []byte, err error) {
	f, err := files.Open(path)
	if err == nil {
		b, err = io.ReadAll(io.LimitReader(files.Reader(ctx, f), limit+1))
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
		return nil, fail("%s", strings.TrimPrefix(err.Error(), path+": "))
	case errors.Is(err, files.ErrNotRegular) && statErr == nil && info.IsDir():
		return nil, fail("is a directory: name the %s in it", what)
	case errors.Is(err, files.ErrNotRegular):
		return nil, fail("%s: name a %s", strings.TrimPrefix(err.Error(), path+": "), what)
	default:
		return nil, fail("cannot be read: %v", err)
	}
}

// newPlan makes a source of a plan's bytes, and reports what makes them unusable as text.
func newPlan(name string, b []byte) *Report { return newDocument(&source{Name: name}, b, MaxSize) }

// newDocument is newSource with a size limit.
func newDocument(src *source, b []byte, limit int) *Report {
	rep := &Report{Source: src}
	switch {
	case bytes.HasPrefix(b, []byte("SQLite format 3\x00")):
		rep.Add(yamltree.Position{}, nil, "is a run file, not a plan: `parley resume` resumes it, `parley show` shows it")
		return rep
	case len(b) > limit:
		rep.Add(yamltree.Position{}, nil, "is larger than %s: is it the right file?", files.Size(int64(limit)))
		return rep
	case bytes.HasPrefix(b, []byte{0xFF, 0xFE}), bytes.HasPrefix(b, []byte{0xFE, 0xFF}):
		rep.Add(yamltree.Position{}, nil, "is UTF-16: save it as UTF-8")
		return rep
	case binary(b):
		rep.Add(yamltree.Position{}, nil, "is not text: it must be UTF-8 text%s", src.begin())
		return rep
	}
	b = bytes.TrimPrefix(b, []byte("\uFEFF"))
	src.Text = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(strings.ToValidUTF8(string(b), "\uFFFD"))
	src.Conceal(secretsIn(src.Text))
	if i := notText(b); i >= 0 {
		line, column := 1+bytes.Count(b[:i], []byte("\n")), 1+utf8.RuneCount(b[bytes.LastIndexByte(b[:i], '\n')+1:i])
		what := fmt.Sprintf("the control character 0x%02x", b[i])
		if b[i] >= utf8.RuneSelf {
			what = fmt.Sprintf("the byte 0x%02x, which is not UTF-8", b[i])
		}
		src.Conceal(secretsGuessed(src.Text))
		rep.Add(yamltree.Position{Line: line, Column: column}, nil, "holds %s: it must be UTF-8 text", what)
		return rep
	}
	return rep
}

// binary reports whether b is not text at all, rather than a text with an error.
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

// notText returns the index of the first byte that is not UTF-8 text, or -1.
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
