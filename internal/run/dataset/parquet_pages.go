package dataset

import (
	"errors"
	"fmt"
	"io"
	"strings"

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
