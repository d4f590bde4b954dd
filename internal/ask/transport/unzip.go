package transport

import (
	"compress/gzip"
	"fmt"
	"io"
	"strings"

	"parley/internal/ask/wire/fault"
)

// unzip decompresses the body if the server compressed it, although we did not ask for it.
func (a *Answer) unzip() error {
	switch enc := strings.ToLower(a.Header.Get("Content-Encoding")); enc {
	case "", "identity":
		return nil
	case "gzip", "x-gzip":
		a.size = -1
		a.body = &zippedBody{ReadCloser: a.body}
		return nil
	default:
		return fault.Malformed(fmt.Sprintf("the answer is encoded as %q, which we did not ask for", enc), nil)
	}
}

// zippedBody decompresses a body. It reads nothing before it is read, and its Close is that of the body.
type zippedBody struct {
	io.ReadCloser
	plain *gzip.Reader
}

func (b *zippedBody) Read(p []byte) (int, error) {
	if b.plain == nil {
		z, err := gzip.NewReader(b.ReadCloser)
		if err != nil {
			return 0, fmt.Errorf("gzip: %w", err)
		}
		b.plain = z
	}
	return b.plain.Read(p)
}
