package transport

import (
	"crypto/tls"
	"errors"
	"net"
	"os"
	"syscall"
	"time"
)

// conn is a connection that one exchange uses at a time.
type conn struct {
	net.Conn
	below net.Conn        // what TLS uses, or Conn itself
	raw   syscall.RawConn // of below; nil: not known
	since time.Time       // when the last exchange ended
	used  bool            // for an exchange before this one
	heard bool            // the answer has begun
	left  int64           // how many bytes may still be read

	first    [1]byte // of the answer
	hasFirst bool    // it was not asked for yet
}

func newConn(c net.Conn) *conn {
	k := &conn{Conn: c, below: c}
	if t, ok := c.(*tls.Conn); ok {
		k.below = t.NetConn()
	}
	if s, ok := k.below.(syscall.Conn); ok {
		if raw, err := s.SyscallConn(); err == nil {
			k.raw = raw
		}
	}
	return k
}

// interrupt ends a Read or a Write in progress, and all later ones.
func (k *conn) interrupt() { _ = k.SetDeadline(time.Unix(1, 0)) } // a closed connection has ended anyway

// cut closes the connection without a word to the server. Close of a TLS connection would wait for a server that does not read.
func (k *conn) cut() error { return k.below.Close() }

// silent reports whether a Read gets nothing until a time, not even an end. A time in the past asks only for what the TLS connection
// has already read.
func (k *conn) silent(until time.Time) bool {
	if k.SetReadDeadline(until) != nil {
		return false
	}
	n, err := k.Conn.Read(k.first[:])
	return n == 0 && errors.Is(err, os.ErrDeadlineExceeded) && k.SetReadDeadline(time.Time{}) == nil
}

// await waits for the first byte of the answer. No buffer is needed meanwhile.
func (k *conn) await() error {
	for n := 0; n == 0; {
		var err error
		if n, err = k.Conn.Read(k.first[:]); err != nil && n == 0 {
			return err
		}
	}
	k.heard, k.hasFirst = true, true
	return nil
}

// Read implements io.Reader.
func (k *conn) Read(p []byte) (n int, err error) {
	if len(p) == 0 {
		return 0, nil
	}
	if k.left <= 0 {
		return 0, errHead
	}
	p = p[:min(int64(len(p)), k.left)]
	if k.hasFirst {
		p[0], k.hasFirst, n = k.first[0], false, 1
	}
	if n < len(p) {
		var more int
		more, err = k.Conn.Read(p[n:])
		n += more
	}
	k.left -= int64(n)
	if n > 0 {
		err = nil // the next Read gets it again
	}
	return n, err
}
