package gateway

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"time"
)

// listen returns a listener whose connections are of type *Conn.
func listen(ln net.Listener) net.Listener { return listener{ln} }

type listener struct{ net.Listener }

func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &Conn{Conn: c}, nil
}

// Conn is a client's connection that can be watched while a request is answered.
//
// An http.Server watches a connection too, by reading one byte. It does not notice a client that sends this
// byte, of its next request, and then goes away. A Conn keeps reading.
type Conn struct {
	net.Conn

	mu      sync.Mutex
	ahead   []byte        // read and not yet asked for
	byte1   bool          // the server's own watch has read its byte
	gone    func()        // called when the client goes away; nil: nobody watches
	reading chan struct{} // closed when the watch ends; nil: there is no watch
	ready   *readiness    // that starts the watch
	waits   uint64        // number of the wait there; 0: there is none
	all     *connStreams  // where it is forgotten when data arrives; may be nil
	hold    hold          // most connections have one
	more    map[any]func()
	closed  bool
}

// hold is what is called when a connection is closed.
type hold struct {
	key  any
	left func()
}

// maxAhead is how many bytes of its next requests a client may send while it waits for an answer. A client
// that sends more is taken to be gone.
const maxAhead = 64 << 10

type connKey struct{}

// connContext returns a context from which Of and Watch get the connection: see http.Server.ConnContext.
func connContext(ctx context.Context, c net.Conn) context.Context {
	if _, ok := c.(*Conn); !ok {
		return ctx
	}
	return context.WithValue(ctx, connKey{}, c)
}

// connOf returns the connection of a request, or nil.
func connOf(ctx context.Context) *Conn {
	c, _ := ctx.Value(connKey{}).(*Conn)
	return c
}

// Hold calls left when the connection is closed. It returns false if it already does for this key, or if the
// connection is closed.
func (c *Conn) Hold(key any, left func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed || c.hold.key == key || c.more[key] != nil:
		return false
	case c.hold.left == nil:
		c.hold = hold{key, left}
		return true
	case c.more == nil:
		c.more = map[any]func(){}
	}
	c.more[key] = left
	return true
}

// connWatch calls gone when the client of a request that the server answers goes away after it has sent data. A
// client that has sent nothing ends the request's context. The returned function ends the watch and must be
// called before the request is over.
func connWatch(ctx context.Context, gone func()) (end func()) {
	c := connOf(ctx)
	if c == nil {
		return func() {}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gone = gone
	if c.byte1 {
		c.begin()
	}
	return c.unwatch
}

// Read implements io.Reader.
func (c *Conn) Read(p []byte) (int, error) {
	c.mu.Lock()
	all := c.all
	n := copy(p, c.ahead)
	c.ahead = c.ahead[n:]
	c.mu.Unlock()
	var err error
	if n == 0 {
		n, err = c.Conn.Read(p)
	}
	if n > 0 && all != nil {
		c.dataArrived()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byte1 = n == 1 && len(p) == 1; c.byte1 && c.gone != nil && c.reading == nil {
		c.begin()
	}
	return n, err
}

// Close implements io.Closer.
func (c *Conn) Close() error {
	c.dataArrived()
	c.mu.Lock()
	first, more := c.hold.left, c.more
	c.hold, c.more, c.closed = hold{}, nil, true
	c.mu.Unlock()
	if first != nil {
		first()
	}
	for _, left := range more {
		left()
	}
	return c.Conn.Close()
}

// unread puts data back.
func (c *Conn) unread(b []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead = append(append([]byte(nil), b...), c.ahead...)
}

// giveBack makes all forget the connection as soon as data arrives.
func (c *Conn) giveBack(all *connStreams) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all, c.byte1 = all, false
}

func (c *Conn) dataArrived() {
	c.mu.Lock()
	all := c.all
	c.all = nil
	c.mu.Unlock()
	if all != nil {
		all.forget(c)
	}
}

// watch reads until the client goes away, which calls gone, or until unwatch. It begins when there is something to read, if r
// can say so: until then it needs no goroutine.
func (c *Conn) watch(r *readiness, gone func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gone, c.ready = gone, r
	if c.waits = r.wait(c); c.waits == 0 {
		c.begin()
	}
}

// isReady starts the watch that has waited under a number. 0 is any number.
func (c *Conn) isReady(number uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waits != 0 && (c.waits == number || number == 0) {
		c.waits = 0
		c.begin()
	}
}

// begin starts the watch. Conn.mu is held.
func (c *Conn) begin() {
	gone, done := c.gone, make(chan struct{})
	c.reading = done
	go func() {
		defer close(done)
		if c.readAhead() {
			gone()
		}
	}()
}

// readAhead keeps what the client sends. It reports whether the client went away.
func (c *Conn) readAhead() bool {
	var few [64]byte // usually nothing arrives
	for {
		n, err := c.Conn.Read(few[:])
		c.mu.Lock()
		c.ahead = append(c.ahead, few[:n]...)
		many := len(c.ahead) > maxAhead
		c.mu.Unlock()
		if err != nil {
			return !errors.Is(err, os.ErrDeadlineExceeded)
		}
		if many {
			return true
		}
	}
}

// unwatch ends the watch and waits for it.
func (c *Conn) unwatch() {
	c.mu.Lock()
	reading, waits := c.reading, c.waits
	c.gone, c.reading, c.byte1, c.waits = nil, nil, false, 0
	c.mu.Unlock()
	if waits != 0 {
		c.ready.cancel(c, waits)
	}
	if reading == nil {
		return
	}
	_ = c.Conn.SetReadDeadline(time.Unix(1, 0)) // ends the read
	<-reading
	_ = c.Conn.SetReadDeadline(time.Time{})
}
