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
	// net/http writes a head with a stack frame of some 3 KB, which would double the stack of
	// an open stream for as long as it lasts. So it is written on another one.
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		_ = c.rc.Flush() // if the client is gone, the first piece tells
	}()
	<-sent
}

// head returns the header of the answer, with h in it.
func (c *client) head(h http.Header) http.Header {
	to := c.w.Header()
	maps.Copy(to, h)
	if c.episode != nil {
		to["X-Parley-Episode"] = c.episode
	}
	return to
}

// Write sends a piece of a stream, which the client must take in time.
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
		// Whatever may help was tried already: the SDKs need not.
		to["X-Should-Retry"] = []string{"false"}
	}
	c.bound()
	c.status = status
	c.w.WriteHeader(status)
	if _, err := c.w.Write(b); err != nil {
		c.gone = true
	}
}

// bound gives the client its time to take what is written next. A connection keeps its
// deadline from one answer to the next, so that it must be set before every one.
func (c *client) bound() {
	_ = c.rc.SetWriteDeadline(time.Now().Add(c.patience)) // where there are none, none are needed
}

// abort ends the connection, so that what was sent cannot be taken for all of it.
func (c *client) abort() {
	if c.drop == nil {
		panic(http.ErrAbortHandler)
	}
	c.drop()
}
