// Part conn takes a client's connection over from an http.Server for the time of a stream, and gives it
// back afterwards.
//
// An http.Server holds buffers and a goroutine for each connection in use: about a third of what an open
// stream costs. A Stream holds no buffers, and on Linux no goroutine that watches the client: one does for all.
//
// It promises that a client sees what it would see of the server: an HTTP/1.1 answer on a connection that it
// can use again; that Close closes every connection, idle or in use; and that a client that goes away is
// noticed, even if it has sent a part of its next request, and also where the server keeps the connection: see
// Conn. A Stream is used by one goroutine, except Watch.
//
// It is not for other versions of HTTP, or for clients that want the connection closed: those stay with the
// server.

package gateway

import (
	"bytes"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// connStreams is a set of connections that were taken over. The zero value is ready to use.
type connStreams struct {
	mu   sync.Mutex
	open map[*Conn]bool // whether a stream uses it; false: it was given back and is idle
	shut bool

	ready readiness
}

// Stream is a connection and the answer that is sent over it. It is an http.ResponseWriter.
type Stream struct {
	all    *connStreams
	conn   *Conn
	header http.Header
	status int
	begun  bool // the head was sent
	length bool // the head says how long the answer is
	broken bool // a write failed
	gone   atomic.Bool
}

// Take takes the connection of a request over from its server, if possible. The body of the request must have
// been read. Afterwards w and the context of r must not be used.
func (s *connStreams) Take(w http.ResponseWriter, r *http.Request) (*Stream, bool) {
	if r.ProtoMajor != 1 || r.ProtoMinor < 1 || r.Close {
		return nil, false
	}
	raw, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil, false
	}
	conn, ok := raw.(*Conn)
	if !ok {
		conn = &Conn{Conn: raw}
	}
	if n := rw.Reader.Buffered(); n > 0 {
		b, _ := rw.Reader.Peek(n) // they are buffered
		conn.unread(b)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open = map[*Conn]bool{}
	}
	s.open[conn] = true
	return &Stream{all: s, conn: conn, header: http.Header{}}, true
}

// idle marks a connection as unused. It returns false if the connection must be closed.
func (s *connStreams) idle(c *Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.shut {
		s.open[c] = false
	}
	return !s.shut
}

func (s *connStreams) forget(c *Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, c)
}

// Close closes the idle connections, now and in the future, and with all also those in use.
func (s *connStreams) Close(all bool) {
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
func (s *connStreams) End() { s.ready.end() }

// Watch calls gone when the client goes away, in a goroutine that Release waits for.
func (l *Stream) Watch(gone func()) {
	l.conn.watch(&l.all.ready, func() {
		l.gone.Store(true)
		gone()
	})
}

// Header implements http.ResponseWriter.
func (l *Stream) Header() http.Header { return l.header }

// WriteHeader sets the status. It is sent with the first data.
func (l *Stream) WriteHeader(status int) { l.status = status }

// SetWriteDeadline bounds the time of the next writes.
func (l *Stream) SetWriteDeadline(t time.Time) error { return l.conn.SetWriteDeadline(t) }

// FlushError sends the head, if it was not sent yet. Everything else is sent at once.
func (l *Stream) FlushError() error {
	if l.begun {
		return nil
	}
	return l.send(l.head())
}

// Write sends a piece of the answer.
func (l *Stream) Write(p []byte) (int, error) {
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

func (l *Stream) send(parts ...[]byte) error {
	if l.broken {
		return net.ErrClosed
	}
	b := net.Buffers(parts)
	_, err := b.WriteTo(l.conn)
	l.broken = err != nil
	return err
}

// head returns the head of the answer.
func (l *Stream) head() []byte {
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
func (l *Stream) Drop() { l.broken = true }

// Release ends the answer and gives the connection back to srv for the next request.
func (l *Stream) Release(srv *http.Server) {
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
	in := &once{conn: l.conn}
	_ = srv.Serve(in) // it reports that there is nothing more to accept, or that srv is closed
	if in.conn != nil {
		_ = l.conn.Close()
	}
}

// once is a listener that accepts one connection.
type once struct{ conn net.Conn }

func (o *once) Accept() (net.Conn, error) {
	c := o.conn
	o.conn = nil
	if c == nil {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (*once) Close() error   { return nil }
func (*once) Addr() net.Addr { return &net.TCPAddr{} }
