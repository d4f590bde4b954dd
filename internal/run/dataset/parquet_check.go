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
	errParts     = fmt.Errorf("describes more than %d parts", maxStructs)
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
	source, ok := new(thrift.CompactProtocol).NewReaderFromBytes(footer).(thriftSource)
	if !ok {
		return errors.New("parquet-go reads footers in another way") // the tests would not pass
	}
	var meta format.FileMetaData
	switch err := thrift.NewDecoder(&footerReader{thriftSource: source, size: len(footer)}).Decode(&meta); {
	case errors.Is(err, errParts):
		return errParts
	case err != nil:
		return errDamaged // err may say where in a million levels
	}
	if len(meta.Schema)*max(1, len(meta.RowGroups)) > maxChunks {
		return fmt.Errorf("has more than %d parts of columns", maxChunks)
	}
	return nil
}

// thriftSource is what reads Thrift from bytes. The library skips texts with Discard, where there is one; without it, it
// would lose its place.
type thriftSource interface {
	thrift.BytesReader
	Discard(n int) (int, error)
}

// footerReader reads a footer in Thrift's compact protocol and bounds what it asks for. A list has its length before its
// items, and the library trusts it. It also calls itself for every list or struct in another.
type footerReader struct {
	thriftSource
	size  int // of the footer
	parts int // structs and lists that were items of lists
	open  int // structs that were announced and have not ended: they are not nested more deeply
}

// ReadList implements thrift.Reader.
func (r *footerReader) ReadList() (thrift.List, error) {
	l, err := r.thriftSource.ReadList()
	n := int(l.Size)
	switch {
	case err != nil:
		return l, err
	case n > r.size-r.BytesRead(): // every item takes at least a byte
		return l, errDamaged
	case l.Type == thrift.STRUCT:
		r.open += n
		r.parts += n
	case l.Type == thrift.LIST:
		r.parts += n
	}
	if r.parts > maxStructs {
		return l, errParts
	}
	return l, nil
}

// ReadField implements thrift.Reader.
func (r *footerReader) ReadField() (thrift.Field, error) {
	f, err := r.thriftSource.ReadField()
	switch {
	case err == nil && f.Type == thrift.STOP:
		r.open--
	case f.Type == thrift.STRUCT:
		r.open++
	}
	if r.open > maxStructs {
		return f, errParts
	}
	return f, err
}

// ReadSet implements thrift.Reader: Parquet has no sets.
func (r *footerReader) ReadSet() (thrift.Set, error) { return thrift.Set{}, errDamaged }

// ReadMap implements thrift.Reader: Parquet has no maps.
func (r *footerReader) ReadMap() (thrift.Map, error) { return thrift.Map{}, errDamaged }
