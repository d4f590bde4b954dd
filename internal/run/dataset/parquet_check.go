package dataset

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"parley/internal/kit/files"
)

// checkColumns refuses a file whose footer says that its columns hold more than the limits.
func checkColumns(f *parquet.File, l limits) error {
	if len(f.Root().Columns()) == 0 {
		return errors.New("has no columns")
	}
	var bytes, values int64
	for _, group := range f.Metadata().RowGroups {
		for i := range group.Columns {
			chunk := &group.Columns[i].MetaData
			name := strings.Join(chunk.PathInSchema, ".")
			if chunk.TotalUncompressedSize < 0 || chunk.NumValues < 0 {
				return errDamaged
			}
			bytes, values = bytes+min(chunk.TotalUncompressedSize, maxFile), values+min(chunk.NumValues, maxValues+1)
			switch {
			case bytes > int64(l.bytes):
				return fmt.Errorf("column %s: the columns up to here hold more than %s: split the file, or leave out columns that are not needed", name, files.Size(int64(l.bytes)))
			case values > maxValues:
				return fmt.Errorf("column %s: the columns up to here hold more than %d values: split the file", name, maxValues)
			case chunk.NumValues > maxChunkValues:
				return fmt.Errorf("column %s: a row group holds more than %d values: write the file with smaller row groups", name, maxChunkValues)
			case slices.Contains(chunk.Encoding, format.DeltaByteArray): // texts with shared prefixes: few bytes can make any size
				return fmt.Errorf("column %s: values in the encoding %s are not read: write the file with plain or dictionary encoding", name, format.DeltaByteArray)
			}
		}
	}
	return nil
}

// The limits of a Parquet file's metadata.
const (
	maxFooter  = 8 << 20   // bytes
	maxStructs = 100_000   // a list of structs takes some hundred bytes for each, whatever the file holds
	maxChunks  = 1_000_000 // columns times row groups

	maxValues      = 64_000_000 // of a file
	maxChunkValues = 16_000_000 // of a column in a row group, which may all be of one row
)

var (
	errDamaged   = errors.New("is not a Parquet file, or is damaged")
	errEncrypted = errors.New("is encrypted")
)

// checkFooter reads the end of a file, which describes the rest. It refuses a footer that asks for more memory than its
// size justifies.
func checkFooter(r io.ReaderAt, size int64) error {
	var end [8]byte
	if size < 12 {
		return errDamaged
	}
	if _, err := r.ReadAt(end[:], size-8); err != nil {
		return err
	}
	if string(end[4:]) == "PARE" {
		return errEncrypted
	}
	n := int64(binary.LittleEndian.Uint32(end[:4]))
	if string(end[4:]) != "PAR1" || n > size-12 {
		return errDamaged
	}
	if n > maxFooter {
		return fmt.Errorf("its footer is larger than %s", files.Size(maxFooter))
	}
	footer := make([]byte, n)
	if _, err := r.ReadAt(footer, size-8-n); err != nil {
		return err
	}
	w := thriftWalker{rest: footer, structs: maxStructs}
	if err := w.fields(0); err != nil {
		return err
	}
	var meta format.FileMetaData
	if err := thrift.Unmarshal(new(thrift.CompactProtocol), footer, &meta); err != nil {
		return fmt.Errorf("%w: %w", errDamaged, err)
	}
	if len(meta.Schema)*max(1, len(meta.RowGroups)) > maxChunks {
		return fmt.Errorf("has more than %d parts of columns", maxChunks)
	}
	return nil
}

// thriftWalker walks a value in Thrift's compact protocol without building it. A list has its length before its
// items, and the library trusts it.
type thriftWalker struct {
	rest    []byte
	structs int // how many more are allowed
}

const maxThriftDepth = 32

// fields walks the fields of a struct, to its end.
func (w *thriftWalker) fields(depth int) error {
	if depth > maxThriftDepth {
		return errDamaged
	}
	for {
		head, err := w.take(1)
		if err != nil || head[0] == 0 {
			return err
		}
		if head[0]>>4 == 0 { // the field number follows
			if _, err := w.number(); err != nil {
				return err
			}
		}
		if kind := head[0] & 15; kind > 2 { // 1 and 2 are true and false
			if err := w.value(kind, depth); err != nil {
				return err
			}
		}
	}
}

func (w *thriftWalker) value(kind byte, depth int) error {
	switch kind {
	case 1, 2, 3:
		_, err := w.take(1)
		return err
	case 4, 5, 6:
		_, err := w.number()
		return err
	case 7:
		_, err := w.take(8)
		return err
	case 8:
		n, err := w.number()
		if err == nil {
			_, err = w.take(n)
		}
		return err
	case 9, 10:
		return w.list(depth)
	case 12:
		return w.fields(depth + 1)
	default:
		return errDamaged // Parquet has no maps
	}
}

func (w *thriftWalker) list(depth int) error {
	head, err := w.take(1)
	if err != nil {
		return err
	}
	n, kind := uint64(head[0]>>4), head[0]&15
	if n == 15 {
		if n, err = w.number(); err != nil {
			return err
		}
	}
	if n > uint64(len(w.rest)) { // every item takes at least a byte
		return errDamaged
	}
	if kind == 9 || kind == 10 || kind == 12 {
		if w.structs -= int(n); w.structs < 0 {
			return fmt.Errorf("describes more than %d parts", maxStructs)
		}
	}
	for range n {
		if err := w.value(kind, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (w *thriftWalker) take(n uint64) ([]byte, error) {
	if n > uint64(len(w.rest)) {
		return nil, errDamaged
	}
	b := w.rest[:n]
	w.rest = w.rest[n:]
	return b, nil
}

func (w *thriftWalker) number() (uint64, error) {
	u, n := binary.Uvarint(w.rest)
	if n <= 0 {
		return 0, errDamaged
	}
	w.rest = w.rest[n:]
	return u, nil
}
