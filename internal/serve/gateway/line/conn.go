package line

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"time"
)

// Listen returns a listener whose connections are Conns.
func Listen(ln net.Listener) net.Listener { return listener{ln} }

type listener struct{ net.Listener }

func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &Conn{Conn: c}, nil
}

// Conn is a client's connection that can be watched while a request of it is answered.
//
// An http.Server watches it too, by reading one byte. It sees no more of a client that has
// sent that byte, of its next request, and then leaves. A Conn reads on.
type Conn struct {
	net.Conn

	mu      sync.Mutex
	ahead   []byte        // what was read before anybody asked for it
	byte1   bool          // the server's watch has got its byte
	gone    func()        // told when the client goes; nil: nobody watches
	reading chan struct{} // closed when the watch is over; nil: none has begun
	all     *Lines        // who is to forget it when something comes; nil: nobody
	held    map[any]func()
	closed  bool
}

// maxAhead is how much of its next requests a client may send while it waits for an answer.
// Who sends more is not waiting for it.
const maxAhead = 64 << 10

type connKey struct{}

// Context returns a context by which Watch finds the connection: see http.Server.ConnContext.
func Context(ctx context.Context, c net.Conn) context.Context {
	if _, ok := c.(*Conn); !ok {
		return ctx
	}
	return context.WithValue(ctx, connKey{}, c)
}

// Of is the connection of a request, or nil.
func Of(ctx context.Context) *Conn {
	c, _ := ctx.Value(connKey{}).(*Conn)
	return c
}

// Hold has left called when the connection is closed. It is false where that is so already for
// this key, or the connection is closed.
func (c *Conn) Hold(key any, left func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held[key] != nil || c.closed {
		return false
	}
	if c.held == nil {
		c.held = map[any]func(){}
	}
	c.held[key] = left
	return true
}

// Watch calls gone when the client of a request that the server answers goes away after it has
// sent something; that of one that sends nothing ends the request's context. The function that
// it returns ends the watch and must be called before the request is over.
func Watch(ctx context.Context, gone func()) (end func()) {
	c := Of(ctx)
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

// Read reads first what was read before.
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
		c.heard()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byte1 = n == 1 && len(p) == 1; c.byte1 && c.gone != nil && c.reading == nil {
		c.begin()
	}
	return n, err
}

// Close closes the connection.
func (c *Conn) Close() error {
	c.heard()
	c.mu.Lock()
	held := c.held
	c.held, c.closed = nil, true
	c.mu.Unlock()
	for _, left := range held {
		left()
	}
	return c.Conn.Close()
}

// unread puts what was read back.
func (c *Conn) unread(b []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead = append(append([]byte(nil), b...), c.ahead...)
}

// giveBack makes it forgotten by all as soon as something comes: it is the server's own
// matter then.
func (c *Conn) giveBack(all *Lines) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all, c.byte1 = all, false
}

func (c *Conn) heard() {
	c.mu.Lock()
	all := c.all
	c.all = nil
	c.mu.Unlock()
	if all != nil {
		all.forget(c)
	}
}

// watch reads until the client goes, which gone is told, or until unwatch.
func (c *Conn) watch(gone func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gone = gone
	c.begin()
}

// begin is called with the connection locked.
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

// readAhead keeps what the client sends, and says whether it went away.
func (c *Conn) readAhead() bool {
	var few [64]byte // most often nothing comes
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
	reading := c.reading
	c.gone, c.reading, c.byte1 = nil, nil, false
	c.mu.Unlock()
	if reading == nil {
		return
	}
	_ = c.Conn.SetReadDeadline(time.Unix(1, 0)) // so that the read ends
	<-reading
	_ = c.Conn.SetReadDeadline(time.Time{})
}
