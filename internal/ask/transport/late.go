package transport

import "io"

// lateBody opens the body of a request when it is first read.
type lateBody struct {
	Open func() (io.ReadCloser, error)
	rc   io.ReadCloser
}

// Read implements io.Reader.
func (b *lateBody) Read(p []byte) (int, error) {
	if b.rc == nil {
		rc, err := b.Open()
		if err != nil {
			return 0, err
		}
		b.rc = rc
	}
	return b.rc.Read(p)
}

// Close closes the body if it was opened.
func (b *lateBody) Close() error {
	if b.rc == nil {
		return nil
	}
	return b.rc.Close()
}
