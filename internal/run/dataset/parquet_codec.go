package dataset

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/format"
)

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
