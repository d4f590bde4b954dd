package dataset

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

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
