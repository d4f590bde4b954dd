package export

import (
	"bufio"
	"io"
	"strconv"
	"strings"

	"parley/world"
)

// csv writes comma-separated values as in RFC 4180, but with lines that end in \n. The standard
// library's writer does not distinguish a missing value from an empty text.
type csv struct {
	w       *bufio.Writer
	columns []Column
	line    []byte
	begun   bool
}

func newCSV(w io.Writer, columns []Column) *csv {
	return &csv{w: bufio.NewWriterSize(w, buffered), columns: columns}
}

// head writes the names of the columns, once.
func (c *csv) head() error {
	if c.begun {
		return nil
	}
	c.begun = true
	for i, col := range c.columns {
		if i > 0 {
			c.line = append(c.line, ',')
		}
		c.line = append(c.line, col.Name...)
	}
	_, err := c.w.Write(append(c.line, '\n'))
	return err
}

func (c *csv) row(cells []cell) error {
	if err := c.head(); err != nil {
		return err
	}
	line := c.line[:0]
	for i, v := range cells {
		if i > 0 {
			line = append(line, ',')
		}
		if v.there {
			line = appendCSV(line, c.columns[i].Type, v)
		}
	}
	c.line = append(line, '\n')
	_, err := c.w.Write(c.line)
	return err
}

func (c *csv) close() error {
	if err := c.head(); err != nil {
		return err
	}
	return c.w.Flush()
}

func appendCSV(b []byte, t Type, v cell) []byte {
	switch t {
	case Integer:
		return strconv.AppendInt(b, v.n, 10)
	case Double:
		if name, ok := odd(v.f); ok {
			return append(b, name...)
		}
		return appendDouble(b, v.f)
	case Boolean:
		return strconv.AppendBool(b, v.n != 0)
	case Time:
		return appendTime(b, v)
	default:
		return appendCell(b, v.text)
	}
}

// appendCell writes a text: see world.Formula. A NUL, at which many readers stop, is written as U+FFFD.
func appendCell(b []byte, s string) []byte {
	if strings.IndexByte(s, 0) >= 0 {
		s = strings.ReplaceAll(s, "\x00", "\uFFFD")
	}
	guard := world.Formula(s)
	if !guard && s != "" && !strings.ContainsAny(s, ",\"\r\n") && s[0] != ' ' && s[len(s)-1] != ' ' {
		return append(b, s...)
	}
	b = append(b, '"')
	if guard {
		b = append(b, '\'')
	}
	for {
		before, after, more := strings.Cut(s, `"`)
		b = append(b, before...)
		if !more {
			return append(b, '"')
		}
		b = append(b, `""`...)
		s = after
	}
}
