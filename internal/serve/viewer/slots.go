package viewer

import (
	"bytes"
	"context"
	"io"
	"net/http"
)

// slots bound how many pages are made at once. Who waits for a client, or for the process that plays a run, holds none.
type slots chan struct{}

// maxPages is how many pages are made at once: each may need its own connection to a run file. Pages of seats have
// slots of their own, so that people with a link do not keep the owner of the run waiting.
const (
	maxPages     = 16
	maxSeatPages = 4
)

// with calls f in a slot. It reports whether it did: not if ctx is done before a slot is free.
func (s slots) with(ctx context.Context, f func()) bool {
	select {
	case s <- struct{}{}:
	case <-ctx.Done():
		return false
	}
	defer func() { <-s }()
	f()
	return true
}

// without calls f, which waits, and lends the slot of its caller to others meanwhile.
func (s slots) without(f func()) {
	<-s
	defer func() { s <- struct{}{} }()
	f()
}

// receive reads the form of a request into memory. A form that is too long is cut there: who reads it finds that it is.
func receive(r *http.Request, limit int64) error {
	if r.Method != http.MethodPost {
		return nil
	}
	b, err := io.ReadAll(io.LimitReader(r.Body, limit+1))
	r.Body = io.NopCloser(bytes.NewReader(b))
	return err
}
