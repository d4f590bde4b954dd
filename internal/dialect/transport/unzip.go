package transport

import (
	"compress/gzip"
	"fmt"
	"io"
	"strings"

	"parley/internal/wire/fault"
)

// unzip decompresses the body if the server compressed it, although we did not ask for it.
func (a *Answer) unzip() error {
	switch enc := strings.ToLower(a.Header.Get("Content-Encoding")); enc {
	case "", "identity":
		return nil
	case "gzip", "x-gzip":
		a.size = -1
		a.body = &lateBody{open: unzipper(a.body)}
		return nil
	default:
		return fault.Malformed(fmt.Sprintf("the answer is encoded as %q, which we did not ask for", enc), nil)
	}
}

// lateBody opens a body when it is first read.
type lateBody struct {
	open func() (io.ReadCloser, error)
	rc   io.ReadCloser
}

func (b *lateBody) Read(p []byte) (int, error) {
	if b.rc == nil {
		rc, err := b.open()
		if err != nil {
			return 0, err
		}
		b.rc = rc
	}
	return b.rc.Read(p)
}

func (b *lateBody) Close() error {
	if b.rc == nil {
		return nil
	}
	return b.rc.Close()
}

func unzipper(body io.ReadCloser) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) {
		z, err := gzip.NewReader(body)
		if err != nil {
			return nil, fmt.Errorf("gzip: %w", err)
		}
		return struct {
			io.Reader
			io.Closer
		}{z, body}, nil
	}
}
