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
