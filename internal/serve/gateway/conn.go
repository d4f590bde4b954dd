package gateway

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// watchedListener returns a listener whose connections are of type *clientConn.
func watchedListener(ln net.Listener) net.Listener { return listener{ln} }

type listener struct{ net.Listener }

func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &clientConn{Conn: c}, nil
}

// clientConn is a client's connection that can be watched while a request is answered.
//
// An http.Server watches a connection too, by reading one byte. It does not notice a client that sends this
// byte, of its next request, and then goes away. A clientConn keeps reading.
type clientConn struct {
	net.Conn

	mu         sync.Mutex
	ahead      []byte        // read and not yet asked for
	serverRead bool          // the server's own watch has read its byte
	gone       func()        // called when the client goes away; nil: nobody watches
	reading    chan struct{} // closed when the watch ends; nil: there is no watch
	ready      *readiness    // that starts the watch
	waits      uint64        // number of the wait there; 0: there is none
	all        *takenConns   // where it is forgotten when data arrives; may be nil
	hold       hold          // most connections have one
	more       map[any]func()
	closed     bool
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

// connContext returns a context from which requestConn and watchConn get the connection: see
// http.Server.ConnContext.
func connContext(ctx context.Context, c net.Conn) context.Context {
	if _, ok := c.(*clientConn); !ok {
		return ctx
	}
	return context.WithValue(ctx, connKey{}, c)
}

// requestConn returns the connection of a request, or nil.
func requestConn(ctx context.Context) *clientConn {
	c, _ := ctx.Value(connKey{}).(*clientConn)
	return c
}

// Hold calls left when the connection is closed. It returns false if it already does for this key, or if the
// connection is closed.
func (c *clientConn) Hold(key any, left func()) bool {
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

// watchConn calls gone when the client of a request that the server answers goes away after it has sent data. A
// client that has sent nothing ends the request's context. The returned function ends the watch and must be
// called before the request is over.
func watchConn(ctx context.Context, gone func()) (end func()) {
	c := requestConn(ctx)
	if c == nil {
		return func() {}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gone = gone
	if c.serverRead {
		c.begin()
	}
	return c.unwatch
}

// Read implements io.Reader.
func (c *clientConn) Read(p []byte) (int, error) {
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
	if c.serverRead = n == 1 && len(p) == 1; c.serverRead && c.gone != nil && c.reading == nil {
		c.begin()
	}
	return n, err
}

// Close implements io.Closer.
func (c *clientConn) Close() error {
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
func (c *clientConn) unread(b []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead = append(append([]byte(nil), b...), c.ahead...)
}

// giveBack makes all forget the connection as soon as data arrives.
func (c *clientConn) giveBack(all *takenConns) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all, c.serverRead = all, false
}

func (c *clientConn) dataArrived() {
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
func (c *clientConn) watch(r *readiness, gone func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gone, c.ready = gone, r
	if c.waits = r.wait(c); c.waits == 0 {
		c.begin()
	}
}

// isReady starts the watch that has waited under a number. 0 is any number.
func (c *clientConn) isReady(number uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waits != 0 && (c.waits == number || number == 0) {
		c.waits = 0
		c.begin()
	}
}

// begin starts the watch. clientConn.mu is held.
func (c *clientConn) begin() {
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
func (c *clientConn) readAhead() bool {
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
func (c *clientConn) unwatch() {
	c.mu.Lock()
	reading, waits := c.reading, c.waits
	c.gone, c.reading, c.serverRead, c.waits = nil, nil, false, 0
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

// takenConns are the connections of clients that were taken over from an http.Server for the time of a stream. They
// are given back afterwards. The zero value is ready to use.
//
// An http.Server holds buffers and a goroutine for each connection in use: about a third of what an open
// stream costs. A takenStream holds no buffers, and on Linux no goroutine that watches the client: one goroutine
// watches all clients.
//
// A client sees what it would see of the server: an HTTP/1.1 answer on a connection that it can use again. Other
// versions of HTTP, and clients that want the connection closed, stay with the server. Close closes every
// connection, idle or in use. A client that goes away is noticed, even if it has sent a part of its next request.
type takenConns struct {
	mu   sync.Mutex
	open map[*clientConn]bool // whether a stream uses it; false: it was given back and is idle
	shut bool

	ready readiness
}

// takenStream is a connection and the answer that is sent over it. It is an http.ResponseWriter. One goroutine uses it,
// except Watch.
type takenStream struct {
	all    *takenConns
	conn   *clientConn
	header http.Header
	status int
	begun  bool // the head was sent
	length bool // the head says how long the answer is
	broken bool // a write failed
	gone   atomic.Bool
}

// Take takes the connection of a request over from its server, if possible. The body of the request must have
// been read. Afterwards w and the context of r must not be used.
func (s *takenConns) Take(w http.ResponseWriter, r *http.Request) (*takenStream, bool) {
	if r.ProtoMajor != 1 || r.ProtoMinor < 1 || r.Close {
		return nil, false
	}
	raw, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil, false
	}
	conn, ok := raw.(*clientConn)
	if !ok {
		conn = &clientConn{Conn: raw}
	}
	if n := rw.Reader.Buffered(); n > 0 {
		b, _ := rw.Reader.Peek(n) // they are buffered
		conn.unread(b)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open = map[*clientConn]bool{}
	}
	s.open[conn] = true
	return &takenStream{all: s, conn: conn, header: http.Header{}}, true
}

// idle marks a connection as unused. It returns false if the connection must be closed.
func (s *takenConns) idle(c *clientConn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.shut {
		s.open[c] = false
	}
	return !s.shut
}

func (s *takenConns) forget(c *clientConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, c)
}

// Close closes the idle connections, now and in the future, and with all also those in use.
func (s *takenConns) Close(all bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shut = true
	for c, busy := range s.open {
		if all || !busy {
			_ = c.Conn.Close() // its user gets an error
			c.isReady(0)       // the watch too
		}
	}
}

// End ends what all streams share. There must be none any more.
func (s *takenConns) End() { s.ready.end() }

// Watch calls gone when the client goes away, in a goroutine that Release waits for.
func (l *takenStream) Watch(gone func()) {
	l.conn.watch(&l.all.ready, func() {
		l.gone.Store(true)
		gone()
	})
}

// Header implements http.ResponseWriter.
func (l *takenStream) Header() http.Header { return l.header }

// WriteHeader sets the status. It is sent with the first data.
func (l *takenStream) WriteHeader(status int) { l.status = status }

// SetWriteDeadline bounds the time of the next writes.
func (l *takenStream) SetWriteDeadline(t time.Time) error { return l.conn.SetWriteDeadline(t) }

// FlushError sends the head, if it was not sent yet. Everything else is sent at once.
func (l *takenStream) FlushError() error {
	if l.begun {
		return nil
	}
	return l.send(l.head())
}

// Write sends a piece of the answer.
func (l *takenStream) Write(p []byte) (int, error) {
	var parts net.Buffers
	if !l.begun {
		parts = append(parts, l.head())
	}
	switch {
	case l.length:
		parts = append(parts, p)
	case len(p) > 0: // an empty chunk would end the answer
		size := append(strconv.AppendInt(make([]byte, 0, 16), int64(len(p)), 16), "\r\n"...)
		parts = append(parts, size, p, []byte("\r\n"))
	}
	if err := l.send(parts...); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (l *takenStream) send(parts ...[]byte) error {
	if l.broken {
		return net.ErrClosed
	}
	b := net.Buffers(parts)
	_, err := b.WriteTo(l.conn)
	l.broken = err != nil
	return err
}

// head returns the head of the answer.
func (l *takenStream) head() []byte {
	l.begun = true
	if l.status == 0 {
		l.status = http.StatusOK
	}
	var b bytes.Buffer
	b.Grow(512)
	b.WriteString("HTTP/1.1 " + strconv.Itoa(l.status) + " " + http.StatusText(l.status) + "\r\n")
	l.length = l.header["Content-Length"] != nil
	if !l.length {
		l.header["Transfer-Encoding"] = []string{"chunked"}
	}
	l.header["Date"] = []string{time.Now().UTC().Format(http.TimeFormat)}
	_ = l.header.Write(&b) // a buffer does not fail
	b.WriteString("\r\n")
	l.header = nil // a stream may last long
	return b.Bytes()
}

// Drop closes the connection on Release, so that the answer cannot be taken for a whole one.
func (l *takenStream) Drop() { l.broken = true }

// Release ends the answer and gives the connection back to srv for the next request.
func (l *takenStream) Release(srv *http.Server) {
	if l.begun && !l.length {
		_ = l.send([]byte("0\r\n\r\n")) // the client may be gone
	}
	l.conn.unwatch()
	if l.broken || l.gone.Load() || !l.begun || l.conn.SetDeadline(time.Time{}) != nil || !l.all.idle(l.conn) {
		l.all.forget(l.conn)
		_ = l.conn.Close()
		return
	}
	l.conn.giveBack(l.all)
	in := &singleListener{conn: l.conn}
	_ = srv.Serve(in) // it reports that there is nothing more to accept, or that srv is closed
	if in.conn != nil {
		_ = l.conn.Close()
	}
}

// singleListener is a listener that accepts one connection.
type singleListener struct{ conn net.Conn }

func (o *singleListener) Accept() (net.Conn, error) {
	c := o.conn
	o.conn = nil
	if c == nil {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (*singleListener) Close() error   { return nil }
func (*singleListener) Addr() net.Addr { return &net.TCPAddr{} }
