package export

import (
	"bufio"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	pq "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"

	"parley/internal/run/results"
	"parley/world/exhibit"
)

// bufferSize is how many bytes are collected before they are written.
const bufferSize = 256 << 10

// jsonl writes an object for each row, with every column.
type jsonl struct {
	w       *bufio.Writer
	columns []Column
	keys    []string // with what comes before them in a line
	line    []byte
}

func newJSONL(w io.Writer, columns []Column) *jsonl {
	j := &jsonl{w: bufio.NewWriterSize(w, bufferSize), columns: columns}
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
		if name, ok := results.NonFinite(v.f); ok {
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

// csv writes comma-separated values as in RFC 4180, but with lines that end in \n. The standard
// library's writer does not distinguish a missing value from an empty text.
type csv struct {
	w       *bufio.Writer
	columns []Column
	line    []byte
}

// newCSV writes the names of the columns into the buffer.
func newCSV(w io.Writer, columns []Column) *csv {
	c := &csv{w: bufio.NewWriterSize(w, bufferSize), columns: columns}
	for i, col := range columns {
		if i > 0 {
			c.line = append(c.line, ',')
		}
		c.line = append(c.line, col.Name...)
	}
	_, _ = c.w.Write(append(c.line, '\n')) // Flush returns the error
	return c
}

func (c *csv) row(cells []cell) error {
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

func (c *csv) close() error { return c.w.Flush() }

func appendCSV(b []byte, t Type, v cell) []byte {
	switch t {
	case Integer:
		return strconv.AppendInt(b, v.n, 10)
	case Double:
		if name, ok := results.NonFinite(v.f); ok {
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

// appendCell writes a text: see exhibit.Formula. A NUL, at which many readers stop, is written as U+FFFD.
func appendCell(b []byte, s string) []byte {
	if strings.IndexByte(s, 0) >= 0 {
		s = strings.ReplaceAll(s, "\x00", "\uFFFD")
	}
	guard := exhibit.Formula(s)
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

const (
	// groupBytes is about the size of a row group before compression: the most that is kept in
	// memory.
	groupBytes = 32 << 20
	// rowsAtOnce is how many rows are passed to the library at once: it looks at the size of a page
	// after that many.
	rowsAtOnce = 64
	// dictionaryBytes is the size at which a column does not get a dictionary.
	dictionaryBytes = 1 << 20
)

// parquet writes Parquet, compressed with zstd. Every column may be null.
type parquet struct {
	w      *pq.GenericWriter[any]
	kinds  []pq.Kind    // by column
	nulls  []pq.Value   // by column
	values [][]pq.Value // by column, then by row: the library takes columns without copying them first
	used   int          // of the rows of values
	held   int          // bytes in this row group
}

func newParquet(w io.Writer, columns []Column) (*parquet, error) {
	schema, err := parquetSchema(columns)
	if err != nil {
		return nil, err
	}
	options := []pq.WriterOption{
		schema, pq.Compression(&zstd.Codec{Level: zstd.SpeedFastest}), pq.CreatedBy("parley", "", ""),
		pq.DictionaryMaxBytes(dictionaryBytes), pq.ColumnPageBuffers(pq.NewBufferPool()),
	}
	for _, c := range columns {
		if c.Type == Text || c.Type == JSON { // the bounds of such texts are long and useless
			options = append(options, pq.SkipPageBounds(c.Name), pq.SkipPageStatistics(c.Name))
		}
	}
	p := &parquet{w: pq.NewGenericWriter[any](w, options...)}
	for i, c := range columns {
		p.kinds = append(p.kinds, kindOf(c.Type))
		p.nulls = append(p.nulls, pq.NullValue().Level(0, 0, i))
		p.values = append(p.values, slices.Repeat(p.nulls[i:], rowsAtOnce))
	}
	return p, nil
}

// kindOf returns how values of a type are stored.
func kindOf(t Type) pq.Kind {
	switch t {
	case Integer, Time:
		return pq.Int64
	case Double:
		return pq.Double
	case Boolean:
		return pq.Boolean
	default:
		return pq.ByteArray
	}
}

// parquetSchema keeps the order of columns, which the library does for structs only.
func parquetSchema(columns []Column) (schema *pq.Schema, err error) {
	defer func() { // the library panics on unknown tags
		if v := recover(); v != nil {
			err = fmt.Errorf("parquet: %v", v)
		}
	}()
	fields := make([]reflect.StructField, len(columns))
	for i, c := range columns {
		tag, of := c.Name+",optional", reflect.TypeFor[string]()
		switch c.Type {
		case Integer:
			of = reflect.TypeFor[int64]()
		case Double:
			of = reflect.TypeFor[float64]()
		case Boolean:
			of = reflect.TypeFor[bool]()
		case Time:
			tag, of = tag+",timestamp(microsecond)", reflect.TypeFor[int64]()
		default:
			if c.few {
				tag += ",dict"
			}
		}
		fields[i] = reflect.StructField{Name: fmt.Sprintf("C%d", i), Type: of, Tag: reflect.StructTag(fmt.Sprintf("parquet:%q", tag))}
	}
	return pq.SchemaOf(reflect.New(reflect.StructOf(fields)).Interface()), nil
}

func (p *parquet) row(cells []cell) error {
	for i := range cells {
		switch to := &p.values[i][p.used]; {
		case cells[i].there:
			*to = p.value(i, &cells[i])
		case !to.IsNull(): // it often is: many columns are empty
			*to = p.nulls[i]
		}
		p.held += 8 + len(cells[i].text)
	}
	p.used++
	if p.held < groupBytes && p.used < rowsAtOnce {
		return nil
	}
	if err := p.flush(); err != nil || p.held < groupBytes {
		return err
	}
	p.held = 0
	return p.w.Flush()
}

// flush passes the rows to the library.
func (p *parquet) flush() error {
	if p.used == 0 {
		return nil
	}
	for i, c := range p.w.ColumnWriters() {
		if _, err := c.WriteRowValues(p.values[i][:p.used]); err != nil {
			return fmt.Errorf("parquet: %w", err)
		}
	}
	p.used = 0
	return nil
}

func (p *parquet) value(i int, v *cell) pq.Value {
	switch p.kinds[i] {
	case pq.Int64:
		return pq.Int64Value(v.n).Level(0, 1, i)
	case pq.Double:
		return pq.DoubleValue(v.f).Level(0, 1, i)
	case pq.Boolean:
		return pq.BooleanValue(v.n != 0).Level(0, 1, i)
	default:
		return pq.ByteArrayValue([]byte(v.text)).Level(0, 1, i)
	}
}

func (p *parquet) close() error {
	if err := p.flush(); err != nil {
		return err
	}
	if err := p.w.Close(); err != nil {
		return fmt.Errorf("parquet: %w", err)
	}
	return nil
}
