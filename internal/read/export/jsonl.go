package export

import (
	"bufio"
	"io"
	"strconv"
	"time"
	"unicode/utf8"
)

// buffered is how many bytes are collected before they are written.
const buffered = 256 << 10

// jsonl writes an object for each row, with every column.
type jsonl struct {
	w       *bufio.Writer
	columns []Column
	keys    []string // with what comes before them in a line
	line    []byte
}

func newJSONL(w io.Writer, columns []Column) *jsonl {
	j := &jsonl{w: bufio.NewWriterSize(w, buffered), columns: columns}
	for i, c := range columns {
		before := ","
		if i == 0 {
			before = "{"
		}
		j.keys = append(j.keys, string(appendQuoted([]byte(before), c.Name))+":")
	}
	return j
}

func (j *jsonl) row(cells []cell) error {
	line := j.line[:0]
	for i, v := range cells {
		line = append(line, j.keys[i]...)
		line = appendJSON(line, j.columns[i].Type, v)
	}
	j.line = append(line, "}\n"...)
	_, err := j.w.Write(j.line)
	return err
}

func (j *jsonl) close() error { return j.w.Flush() }

func appendJSON(b []byte, t Type, v cell) []byte {
	if !v.there {
		return append(b, "null"...)
	}
	switch t {
	case Integer:
		return strconv.AppendInt(b, v.n, 10)
	case Double:
		if name, ok := odd(v.f); ok {
			return appendQuoted(b, name)
		}
		return appendDouble(b, v.f)
	case Boolean:
		return strconv.AppendBool(b, v.n != 0)
	case Time:
		b = append(b, '"')
		return append(appendTime(b, v), '"')
	default:
		return appendQuoted(b, v.text)
	}
}

func appendDouble(b []byte, f float64) []byte { return strconv.AppendFloat(b, f, 'g', -1, 64) }

func appendTime(b []byte, v cell) []byte {
	return time.UnixMicro(v.n).UTC().AppendFormat(b, timeLayout)
}

// appendQuoted writes a text, which is valid UTF-8, as JSON.
func appendQuoted(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	done := 0 // of s
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' && c != 0x7f && c < utf8.RuneSelf {
			i++
			continue
		}
		r, n := rune(c), 1
		if c >= utf8.RuneSelf {
			r, n = utf8.DecodeRuneInString(s[i:])
			if r >= 0xa0 && r != 0x2028 && r != 0x2029 {
				i += n
				continue
			}
		}
		b = append(b, s[done:i]...)
		switch r {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, `\n`...)
		case '\t':
			b = append(b, `\t`...)
		case '\r':
			b = append(b, `\r`...)
		default:
			b = append(b, '\\', 'u', hex[r>>12&15], hex[r>>8&15], hex[r>>4&15], hex[r&15])
		}
		i += n
		done = i
	}
	return append(append(b, s[done:]...), '"')
}
