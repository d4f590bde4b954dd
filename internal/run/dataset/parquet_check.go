package dataset

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"parley/internal/kit/files"
)

// The limits of the pages that hold the values of columns.
const (
	maxHeader    = 16 << 20   // bytes of a page's header, which may hold its smallest and largest text
	maxPage      = 64 << 20   // bytes of a page, decompressed
	maxValues    = 64_000_000 // of a file
	maxRowValues = 1_000_000  // of one column in one row
	maxFixed     = 64 << 10   // bytes of a value of fixed length
)

// pageChecker checks the pages of a file before the library reads them.
type pageChecker struct {
	r      io.ReaderAt
	size   int64 // of the file
	limit  int   // bytes of all pages, decompressed
	bytes  int
	values int
	rowRun int // values since the column's last row began
}

// checkPages decompresses every page within limits and counts its values: a run of equal values takes a few bytes,
// however long it is.
func checkPages(r io.ReaderAt, f *parquet.File, l limits) error {
	c := &pageChecker{r: r, size: f.Size(), limit: l.bytes}
	leaves := leavesOf(f.Root(), nil)
	if len(leaves) == 0 {
		return errors.New("has no columns")
	}
	groups := f.Metadata().RowGroups
	for i := range groups {
		if len(groups[i].Columns) != len(leaves) {
			return errDamaged
		}
		for j, leaf := range leaves {
			chunk := &groups[i].Columns[j].MetaData
			// The library uses the codec of the first chunk for all of them.
			if first := groups[0].Columns[j].MetaData.Codec; chunk.Codec != first {
				return fmt.Errorf("column %s: is compressed with both %s and %s", pathOf(leaf), first, chunk.Codec)
			}
			if err := c.chunk(chunk, leaf); err != nil {
				return fmt.Errorf("column %s: %w", pathOf(leaf), err)
			}
		}
	}
	return nil
}

func leavesOf(c *parquet.Column, all []*parquet.Column) []*parquet.Column {
	if c.Leaf() {
		return append(all, c)
	}
	for _, child := range c.Columns() {
		all = leavesOf(child, all)
	}
	return all
}

func pathOf(c *parquet.Column) string { return strings.Join(c.Path(), ".") }

// chunk checks the pages of a column in a row group.
func (c *pageChecker) chunk(m *format.ColumnMetaData, leaf *parquet.Column) error {
	at := m.DataPageOffset
	if m.DictionaryPageOffset != 0 {
		at = m.DictionaryPageOffset
	}
	end := at + m.TotalCompressedSize
	if at < 0 || m.DataPageOffset < at || m.TotalCompressedSize < 0 || end < at || end > c.size || leaf.Type().Kind() == parquet.FixedLenByteArray && leaf.Type().Length() > maxFixed {
		return errDamaged
	}
	dictionary, reached := -1, false
	c.rowRun = 0
	for at < end {
		reached = reached || at == m.DataPageOffset
		if at > m.DataPageOffset && !reached {
			return errDamaged // the library would begin in the middle of a page
		}
		h, n, err := c.header(at, end)
		if err != nil {
			return err
		}
		at += int64(n)
		p := page{header: h, leaf: leaf, codec: m.Codec, dictionary: dictionary}
		if err := c.page(&p, at, end); err != nil {
			return err
		}
		dictionary = p.dictionary
		at += int64(h.CompressedPageSize)
	}
	return nil
}

// header reads the header of a page, and returns its length.
func (c *pageChecker) header(at, end int64) (*format.PageHeader, int, error) {
	// Most headers are short. A longer one is read again.
	for size := int64(4 << 10); ; size = min(64*size, maxHeader) {
		b := make([]byte, min(size, end-at))
		if _, err := c.r.ReadAt(b, at); err != nil {
			return nil, 0, err
		}
		w := thriftWalker{rest: b, structs: maxStructs}
		if err := w.fields(0); err != nil {
			if size < maxHeader && int64(len(b)) < end-at {
				continue
			}
			return nil, 0, err
		}
		n := len(b) - len(w.rest)
		h := &format.PageHeader{}
		if err := thrift.Unmarshal(new(thrift.CompactProtocol), b[:n], h); err != nil {
			return nil, 0, fmt.Errorf("%w: %w", errDamaged, err)
		}
		return h, n, nil
	}
}

// page checks the page whose bytes begin at offset at.
func (c *pageChecker) page(p *page, at, end int64) error {
	h := p.header
	if h.CompressedPageSize < 0 || h.UncompressedPageSize < 0 || at+int64(h.CompressedPageSize) > end {
		return errDamaged
	}
	if h.UncompressedPageSize > maxPage || h.CompressedPageSize > maxPage {
		return fmt.Errorf("has a page of more than %s", files.Size(maxPage))
	}
	if c.bytes += int(h.UncompressedPageSize); c.bytes > c.limit {
		return fmt.Errorf("the columns up to here hold more than %s: split the file, or leave out columns that are not needed", files.Size(int64(c.limit)))
	}
	n, err := p.count()
	if err != nil {
		return err
	}
	if c.values += n; c.values > maxValues {
		return fmt.Errorf("the columns up to here hold more than %d values: split the file", maxValues)
	}
	data := make([]byte, h.CompressedPageSize)
	if _, err := c.r.ReadAt(data, at); err != nil {
		return err
	}
	return p.check(data, n, &c.rowRun)
}

// page is a page of a column.
type page struct {
	header     *format.PageHeader
	leaf       *parquet.Column
	codec      format.CompressionCodec
	dictionary int // the number of values of the dictionary; -1: none yet
}

// count returns the number of values in the page.
func (p *page) count() (int, error) {
	h := p.header
	n := int32(-1)
	switch {
	case h.Type == format.DictionaryPage && h.DictionaryPageHeader.Valid:
		n = h.DictionaryPageHeader.V.NumValues
	case h.Type == format.DataPage && h.DataPageHeader.Valid:
		n = h.DataPageHeader.V.NumValues
	case h.Type == format.DataPageV2 && h.DataPageHeaderV2.Valid:
		n = h.DataPageHeaderV2.V.NumValues
	}
	if n < 0 {
		return 0, errDamaged
	}
	return int(n), nil
}

// check checks the page's bytes. rowRun counts the values so far of the row in which the page before ended.
func (p *page) check(data []byte, n int, rowRun *int) (err error) {
	size := int(p.header.UncompressedPageSize)
	switch p.header.Type {
	case format.DictionaryPage:
		if data, err = decompress(p.codec, data, size); err != nil {
			return err
		}
		e := p.header.DictionaryPageHeader.V.Encoding
		if e != format.Plain && e != format.PlainDictionary || //nolint:staticcheck // older writers use it
			n > 8*len(data) || p.dictionary >= 0 {
			return errDamaged
		}
		p.dictionary = n
		return nil
	case format.DataPage:
		h := p.header.DataPageHeader.V
		if data, err = decompress(p.codec, data, size); err != nil {
			return err
		}
		if p.leaf.MaxRepetitionLevel() > 0 {
			levels, rest, err := prefixed(data, h.RepetitionLevelEncoding)
			if err != nil {
				return err
			}
			if err := p.rows(levels, n, rowRun); err != nil {
				return err
			}
			data = rest
		}
		if p.leaf.MaxDefinitionLevel() > 0 {
			levels, rest, err := prefixed(data, h.DefinitionLevelEncoding)
			if err != nil {
				return err
			}
			if err := runs(levels, width(p.leaf.MaxDefinitionLevel()), n, nil); err != nil {
				return err
			}
			data = rest
		}
		return p.content(h.Encoding, data, n)
	default:
		return p.checkV2(data, n, size, rowRun)
	}
}

// checkV2 checks a page whose levels are not compressed.
func (p *page) checkV2(data []byte, n, size int, rowRun *int) (err error) {
	h := p.header.DataPageHeaderV2.V
	r, d := int(h.RepetitionLevelsByteLength), int(h.DefinitionLevelsByteLength)
	if r < 0 || d < 0 || h.NumNulls < 0 || int(h.NumNulls) > n || r > len(data) || d > len(data)-r || r+d > size {
		return errDamaged
	}
	if p.leaf.MaxRepetitionLevel() > 0 {
		if err := p.rows(data[:r], n, rowRun); err != nil {
			return err
		}
	}
	if p.leaf.MaxDefinitionLevel() > 0 {
		if err := runs(data[r:r+d], width(p.leaf.MaxDefinitionLevel()), n, nil); err != nil {
			return err
		}
	}
	data = data[r+d:]
	if !h.IsCompressed.Valid || h.IsCompressed.V {
		if data, err = decompress(p.codec, data, size-r-d); err != nil {
			return err
		}
	}
	return p.content(h.Encoding, data, n)
}

// rows counts the values of each row: a row begins at level 0.
func (p *page) rows(levels []byte, n int, rowRun *int) error {
	return runs(levels, width(p.leaf.MaxRepetitionLevel()), n, func(level uint32, count int) error {
		if level == 0 {
			*rowRun = 1
			return nil
		}
		if *rowRun += count; *rowRun > maxRowValues {
			return fmt.Errorf("a row has more than %d values", maxRowValues)
		}
		return nil
	})
}

// width returns the bits of a level.
func width(level int) int { return bits.Len(uint(level)) }

// prefixed splits off levels that begin with their length.
func prefixed(data []byte, e format.Encoding) (levels, rest []byte, err error) {
	if e != format.RLE {
		return nil, nil, fmt.Errorf("levels in the encoding %s are not read", e)
	}
	if len(data) < 4 {
		return nil, nil, errDamaged
	}
	n := binary.LittleEndian.Uint32(data)
	if uint64(n) > uint64(len(data)-4) {
		return nil, nil, errDamaged
	}
	return data[4 : 4+n], data[4+n:], nil
}

// content checks the values of a page, at most n.
func (p *page) content(e format.Encoding, data []byte, n int) error {
	switch e {
	case format.Plain, format.ByteStreamSplit:
		return nil
	case format.PlainDictionary, format.RLEDictionary: //nolint:staticcheck // older writers use it
		if p.dictionary < 0 {
			return errDamaged
		}
		if len(data) == 0 {
			return nil // only nulls
		}
		if data[0] > 32 {
			return errDamaged
		}
		return runs(data[1:], int(data[0]), n, func(index uint32, _ int) error {
			if int64(index) >= int64(p.dictionary) && p.dictionary > 0 {
				return errDamaged
			}
			return nil
		})
	case format.RLE:
		if len(data) == 0 {
			return nil
		}
		values, _, err := prefixed(data, format.RLE)
		if err != nil {
			return err
		}
		return runs(values, 1, n, nil)
	case format.DeltaBinaryPacked, format.DeltaLengthByteArray:
		return delta(data, n)
	default:
		// DELTA_BYTE_ARRAY stores texts with shared prefixes: few bytes can make any size.
		return fmt.Errorf("values in the encoding %s are not read: write the file with plain or dictionary encoding", e)
	}
}

// delta checks the number of values in a list of differences.
func delta(data []byte, n int) error {
	if len(data) == 0 {
		return nil
	}
	w := thriftWalker{rest: data} // for its numbers
	var total uint64
	for range 3 { // size of blocks, parts of a block, values
		var err error
		if total, err = w.number(); err != nil {
			return err
		}
	}
	if total > uint64(n) {
		return errDamaged
	}
	return nil
}

var errRuns = errors.New("holds more values than it says")

// runs walks values that are encoded as runs of equal ones and groups of eight packed ones. There may be n values, and
// padding of the last group.
func runs(data []byte, width, n int, each func(value uint32, count int) error) error {
	total, room := 0, n+64
	for len(data) > 0 {
		u, used := binary.Uvarint(data)
		if used <= 0 || u>>1 > uint64(room) {
			return errRuns
		}
		data = data[used:]
		count := int(u >> 1)
		size := (width + 7) / 8
		if u&1 != 0 {
			size, count = width*count, 8*count
		}
		if total += count; total > room {
			return errRuns
		}
		if size > len(data) {
			return errDamaged
		}
		if err := run(data[:size], width, count, n-(total-count), u&1 != 0, each); err != nil {
			return err
		}
		data = data[size:]
	}
	return nil
}

// run passes on the values of one run, without padding: at most limit.
func run(data []byte, width, count, limit int, packed bool, each func(value uint32, count int) error) error {
	if each == nil || count == 0 || limit <= 0 {
		return nil
	}
	count = min(count, limit)
	if !packed {
		return each(bitsAt(data, 0, width), count)
	}
	for i := range count {
		if err := each(bitsAt(data, i*width, width), 1); err != nil {
			return err
		}
	}
	return nil
}

// bitsAt reads width bits, the lowest first.
func bitsAt(data []byte, at, width int) uint32 {
	var word [8]byte
	copy(word[:], data[min(at/8, len(data)):])
	return uint32(binary.LittleEndian.Uint64(word[:]) >> (at % 8) & (1<<width - 1))
}

// The limits of a Parquet file's metadata.
const (
	maxFooter  = 8 << 20   // bytes
	maxStructs = 100_000   // a list of structs takes some hundred bytes for each, whatever the file holds
	maxChunks  = 1_000_000 // columns times row groups
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

var errInflated = errors.New("a page is larger than it says")

// decompress returns the bytes of a page, at most size. The library would decompress any amount.
func decompress(codec format.CompressionCodec, data []byte, size int) ([]byte, error) {
	if len(data) == 0 {
		return nil, nil
	}
	switch codec {
	case format.Uncompressed:
		if len(data) > size {
			return nil, errInflated
		}
		return data, nil
	case format.Snappy:
		if n, err := snappy.DecodedLen(data); err != nil || n > size {
			return nil, errors.Join(errInflated, err)
		}
		return snappy.Decode(make([]byte, 0, size), data)
	case format.Gzip:
		r, err := gzip.NewReader(bytes.NewReader(data))
		if err != nil {
			return nil, err
		}
		return inflate(r, size)
	case format.Zstd:
		r, err := zstd.NewReader(bytes.NewReader(data), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxPage))
		if err != nil {
			return nil, err
		}
		defer r.Close()
		return inflate(r, size)
	default:
		return nil, fmt.Errorf("is compressed with %s, which is not read: write the file with zstd, snappy, gzip or none", codec)
	}
}

// inflate reads r to its end, at most size bytes.
func inflate(r io.Reader, size int) ([]byte, error) {
	b := bytes.NewBuffer(make([]byte, 0, min(size, 1<<20)))
	if n, err := io.Copy(b, io.LimitReader(r, int64(size)+1)); err != nil || n > int64(size) {
		return nil, errors.Join(errInflated, err)
	}
	return b.Bytes(), nil
}
