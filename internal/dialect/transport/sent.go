package transport

import (
	"bytes"
	"errors"
	"io"
	"sync/atomic"
)

// body reads a request's body, and sets sent when all of it was read.
type body struct {
	bytes.Reader
	sent *atomic.Bool
}

func newBody(b []byte, sent *atomic.Bool) *body {
	r := &body{sent: sent}
	r.Reset(b)
	return r
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	b.release()
	return n, err
}

// release notes that everything was read, and forgets it: an answer may take long.
func (b *body) release() {
	if b.Len() == 0 {
		b.sent.Store(true)
		b.Reset(nil)
	}
}

// WriteTo implements io.WriterTo.
func (b *body) WriteTo(w io.Writer) (int64, error) {
	n, err := b.Reader.WriteTo(w)
	b.release()
	return n, err
}

func (*body) Close() error { return nil }

// lateBody opens a body when it is first read.
type lateBody struct {
	open func() (io.ReadCloser, error)
	sent *atomic.Bool // set at its end; may be nil
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
	n, err := b.rc.Read(p)
	if b.sent != nil && errors.Is(err, io.EOF) {
		b.sent.Store(true)
	}
	return n, err
}

func (b *lateBody) Close() error {
	if b.rc == nil {
		return nil
	}
	return b.rc.Close()
}
