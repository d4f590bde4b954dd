// Package line takes a client's connection over from an http.Server for as long as a stream
// goes over it, and gives it back after.
//
// An http.Server holds some 12 KB for a connection in use: buffers, and a goroutine that
// waits for the client to go. That is most of what an open stream costs. A Line holds none
// of the buffers.
//
// It promises that what a client sees is what it would see of the server: one answer of
// HTTP/1.1, on a connection that can be used again; that no connection is forgotten: those
// that wait and those in use are all closed by Close; and that a client that goes away is
// noticed, also one that has sent some of its next request before, and also where the server
// keeps the connection: see Conn. A Line is one goroutine's, but for its Watch.
//
// It is not for other versions of HTTP, or for clients that want the connection closed: those
// stay with the server.
package line

import (
	"bytes"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// Lines are connections that were taken over. The zero value is ready.
type Lines struct {
	mu   sync.Mutex
	open map[*Conn]bool // whether a stream goes over it; false: it was given back, and is silent
	shut bool
}

// Line is a connection with an answer that is being sent. It is an http.ResponseWriter.
type Line struct {
	all    *Lines
	conn   *Conn
	header http.Header
	status int
	begun  bool // the head was sent
	length bool // the head says how long the answer is
	broken bool // nothing more can be sent
	gone   atomic.Bool
}

// Take takes the connection of a request over from its server, if that can be done. The
// body of the request must have been read. What w is of use for is over then, and so is
// the context of r.
func (s *Lines) Take(w http.ResponseWriter, r *http.Request) (*Line, bool) {
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
		b, _ := rw.Reader.Peek(n) // they are there
		conn.unread(b)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open = map[*Conn]bool{}
	}
	s.open[conn] = true
	return &Line{all: s, conn: conn, header: http.Header{}}, true
}

// idle notes that nothing goes over a connection now. It says no where it must be closed.
func (s *Lines) idle(c *Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.shut {
		s.open[c] = false
	}
	return !s.shut
}

func (s *Lines) forget(c *Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, c)
}

// Close closes the connections over which nothing goes, from now on at once, and those in
// use too if all says so.
func (s *Lines) Close(all bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shut = true
	for c, busy := range s.open {
		if all || !busy {
			_ = c.Conn.Close() // whoever uses it sees that
		}
	}
}

// Watch calls gone when the client goes away, in a goroutine that Release waits for.
func (l *Line) Watch(gone func()) {
	l.conn.watch(func() {
		l.gone.Store(true)
		gone()
	})
}

// Header is that of the answer.
func (l *Line) Header() http.Header { return l.header }

// WriteHeader begins the answer. It is sent with what follows.
func (l *Line) WriteHeader(status int) { l.status = status }

// SetWriteDeadline bounds the time of what is sent next.
func (l *Line) SetWriteDeadline(t time.Time) error { return l.conn.SetWriteDeadline(t) }

// FlushError sends the head, if it was not sent yet. Everything else is sent at once.
func (l *Line) FlushError() error {
	if l.begun {
		return nil
	}
	return l.send(l.head())
}

// Write sends a piece of the answer.
func (l *Line) Write(p []byte) (int, error) {
	var parts net.Buffers
	if !l.begun {
		parts = append(parts, l.head())
	}
	switch {
	case l.length:
		parts = append(parts, p)
	case len(p) > 0: // a piece of none would be the end
		size := append(strconv.AppendInt(make([]byte, 0, 16), int64(len(p)), 16), "\r\n"...)
		parts = append(parts, size, p, []byte("\r\n"))
	}
	if err := l.send(parts...); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (l *Line) send(parts ...[]byte) error {
	if l.broken {
		return net.ErrClosed
	}
	b := net.Buffers(parts)
	_, err := b.WriteTo(l.conn)
	l.broken = err != nil
	return err
}

// head is the beginning of the answer as it goes out.
func (l *Line) head() []byte {
	l.begun = true
	if l.status == 0 {
		l.status = http.StatusOK
	}
	var b bytes.Buffer
	b.WriteString("HTTP/1.1 " + strconv.Itoa(l.status) + " " + http.StatusText(l.status) + "\r\n")
	l.length = l.header["Content-Length"] != nil
	if !l.length {
		l.header["Transfer-Encoding"] = []string{"chunked"}
	}
	l.header["Date"] = []string{time.Now().UTC().Format(http.TimeFormat)}
	_ = l.header.Write(&b) // a buffer takes everything
	b.WriteString("\r\n")
	l.header = nil // it may be a long time until the end
	return b.Bytes()
}

// Drop ends the connection, so that what was sent cannot be taken for all of it.
func (l *Line) Drop() { l.broken = true }

// Release ends the answer and gives the connection back to srv, for the next request on it.
func (l *Line) Release(srv *http.Server) {
	if l.begun && !l.length {
		_ = l.send([]byte("0\r\n\r\n")) // a client that went away needs no end
	}
	l.conn.unwatch()
	if l.broken || l.gone.Load() || !l.begun || l.conn.SetDeadline(time.Time{}) != nil || !l.all.idle(l.conn) {
		l.all.forget(l.conn)
		_ = l.conn.Close()
		return
	}
	l.conn.giveBack(l.all)
	in := &once{conn: l.conn}
	_ = srv.Serve(in) // it says that there are no more to accept, or that it is shut
	if in.conn != nil {
		_ = l.conn.Close()
	}
}

// once is a listener to which one connection comes.
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
