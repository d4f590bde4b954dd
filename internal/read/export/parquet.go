package export

import (
	"fmt"
	"io"
	"reflect"
	"slices"

	pq "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"
)

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
			err = fmt.Errorf("export: parquet: %v", v)
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
			return fmt.Errorf("export: parquet: %w", err)
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
		return fmt.Errorf("export: parquet: %w", err)
	}
	return nil
}
