package gateway

import (
	"errors"
	"maps"
	"net/http"
	"os"
	"strconv"
	"time"
)

// Begin sends the head of a stream.
func (c *client) Begin(status int, h http.Header) {
	if c.begun != nil {
		c.begun()
	}
	c.bound()
	c.head(h)
	c.status = status
	c.w.WriteHeader(status)
	// net/http needs 3 KB of stack to write a head, which would double the stack of an open stream. So another
	// goroutine writes it.
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		_ = c.rc.Flush() // the first piece shows if the client is gone
	}()
	<-sent
}

// head returns the header of the answer, with h added.
func (c *client) head(h http.Header) http.Header {
	to := c.w.Header()
	maps.Copy(to, h)
	if c.episode != nil {
		to["X-Parley-Episode"] = c.episode
	}
	return to
}

// Write sends a piece of a stream. The client must take it in time.
func (c *client) Write(p []byte) (int, error) {
	c.bound()
	n, err := c.w.Write(p)
	if err == nil {
		err = c.rc.Flush()
	}
	c.gone = c.gone || err != nil
	c.stuck = c.stuck || errors.Is(err, os.ErrDeadlineExceeded)
	return n, err
}

// whole sends an answer in one piece.
func (c *client) whole(status int, b []byte, h http.Header) {
	to := c.head(h)
	if to["Content-Type"] == nil {
		to["Content-Type"] = []string{"application/json"}
	}
	to["Content-Length"] = []string{strconv.Itoa(len(b))}
	if status >= 400 {
		// The gateway has retried already: the SDKs need not.
		to["X-Should-Retry"] = []string{"false"}
	}
	c.bound()
	c.status = status
	c.w.WriteHeader(status)
	if _, err := c.w.Write(b); err != nil {
		c.gone = true
	}
}

// bound sets the deadline for the next write. A connection keeps its deadline from one answer to the next, so
// every answer sets it.
func (c *client) bound() {
	_ = c.rc.SetWriteDeadline(time.Now().Add(c.patience)) // a writer without deadlines needs none
}

// abort closes the connection, so that the answer cannot be taken for a whole one.
func (c *client) abort() {
	if c.drop == nil {
		panic(http.ErrAbortHandler)
	}
	c.drop()
}
