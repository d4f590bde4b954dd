package transport

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// maxHead is the size of the largest head of an answer.
	maxHead = 256 << 10
	// maxHTTP1Body is the size of the largest body of a request.
	maxHTTP1Body = 64 << 10

	// idleFor is how long a connection is kept without use. Load balancers close theirs after a minute, and a request that
	// is sent just then may have been seen.
	idleFor  = 50 * time.Second
	staleFor = time.Second
	readSize = 4 << 10 // of a reader; most answers fit
)

// errHead means that the head of an answer is too large.
var errHead = errors.New("the header of the answer is larger than 256 KB")

// errLength means that a body is not as long as its head says.
var errLength = errors.New("the body of the request does not have the announced length")

// http1Client makes small exchanges with one server over HTTP/1.1.
//
// It is there for programs that wait for very many answers at once. net/http holds two goroutines and two buffers for
// each connection. Here the goroutine of the caller writes and reads, and a call that waits for its answer holds no
// buffer. net/http parses the heads and finds the ends of the bodies.
//
// It is an http.RoundTripper. It promises that an exchange ends with its context. A request is sent once, except that a GET is sent again
// over a new connection if one that was used before ends before the first byte of the answer. The error of an exchange says what the
// server can have got: see exchangeError. A connection is used again only if the answer
// was read to its end and nothing followed it. No head is larger than maxHead, and a header that would break the head is
// refused. An http1Client may be used from several goroutines at once.
//
// It is not for proxies, HEAD, CONNECT and upgrades, or for bodies larger than maxHTTP1Body: it does not read while it
// writes, so it would miss the answer of a server that refuses a large body and stops reading it.
type http1Client struct {
	// dialServer opens a connection, with TLS if the server wants it.
	dialServer func(ctx context.Context) (net.Conn, error)

	mu     sync.Mutex
	idle   []*conn // the one used last comes last
	sweep  *time.Timer
	closed bool // connections are not kept any more
	// staleUntil is until when only new connections are used, since the server has closed others.
	staleUntil time.Time

	readers sync.Pool // *bufio.Reader
	heads   sync.Pool // *[]byte
}

// exchangeError is the error of an exchange over a connection, before its answer began.
type exchangeError struct {
	err    error
	sent   bool // the whole request: the server may have done the work
	reused bool // the connection, which the server may have closed before it saw the request
}

func (e *exchangeError) Error() string { return e.err.Error() }

func (e *exchangeError) Unwrap() error { return e.err }

// RoundTrip sends a request with a body of at most maxHTTP1Body bytes, and waits for the head of the answer. The fields of req that count are
// its context, Method, URL, Host, Header, ContentLength and Body, which is read and closed before anything is sent. The caller must close the
// body of the answer, and not while it reads.
func (c *http1Client) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	for take := c.take; ; take = c.dial {
		out, err := c.head(req)
		if err != nil {
			return nil, err
		}
		k, err := take(ctx)
		if err != nil {
			c.heads.Put(out)
			return nil, err
		}
		res, err := c.exchange(ctx, k, out)
		if err == nil {
			return res, nil
		}
		_ = k.cut() // the exchange has failed already
		if failed, ok := errors.AsType[*exchangeError](err); !ok || !failed.reused || ctx.Err() != nil {
			return nil, err
		}
		c.noteStale()
		if req.Method != http.MethodGet || req.Body != nil {
			return nil, err
		}
	}
}

// head returns the head of a request with its body, so that both are sent in one piece.
func (c *http1Client) head(req *http.Request) (out *[]byte, err error) {
	out, ok := c.heads.Get().(*[]byte)
	if !ok {
		out = new([]byte)
	}
	if *out, err = appendHead((*out)[:0], req); err != nil || req.Body == nil {
		return out, err
	}
	*out, err = appendBody(*out, req.Body, req.ContentLength)
	return out, errors.Join(err, req.Body.Close())
}

// appendBody appends a body of this length.
func appendBody(b []byte, body io.Reader, length int64) ([]byte, error) {
	if length < 0 {
		return b, errLength
	}
	head := len(b)
	b = slices.Grow(b, int(length)+1)
	n, err := io.ReadFull(body, b[head:head+int(length)+1]) // one byte more shows that it ends there
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		err = nil
	}
	if err == nil && int64(n) != length {
		err = errLength
	}
	return b[:head+min(n, int(length))], err
}

// exchange sends a request over a connection, and reads the head of its answer.
func (c *http1Client) exchange(ctx context.Context, k *conn, out *[]byte) (*http.Response, error) {
	k.left = maxHead
	stop := afterFunc(ctx, k.interrupt)
	_, unsent := k.Write(*out)
	c.heads.Put(out)                           // nobody needs it while the server works
	if err := k.awaitFirstByte(); err != nil { // a server may answer before it has read everything
		stop()
		return nil, &exchangeError{cmp.Or(unsent, err), unsent == nil, k.used}
	}
	return c.read(k, stop, unsent == nil)
}

// afterFuncer is a context that calls functions at its end itself: see context.AfterFunc.
type afterFuncer interface {
	AfterFunc(f func()) (stop func() bool)
}

// afterFunc is context.AfterFunc, without a context in between if ctx can do it alone.
func afterFunc(ctx context.Context, f func()) (stop func() bool) {
	if c, ok := ctx.(afterFuncer); ok {
		return c.AfterFunc(f)
	}
	return context.AfterFunc(ctx, f)
}

// read reads the head of an answer that has begun. sent says that the server got the whole request.
func (c *http1Client) read(k *conn, stop func() bool, sent bool) (*http.Response, error) {
	r, ok := c.readers.Get().(*bufio.Reader)
	if !ok {
		r = bufio.NewReaderSize(nil, readSize)
	}
	r.Reset(k)
	res, err := readHead(r)
	if err != nil {
		stop()
		c.giveReader(r)
		return nil, &exchangeError{err, sent, false}
	}
	k.left = math.MaxInt64
	res.Body = &http1Body{
		c: c, k: k, r: r, in: res.Body, stop: stop, ended: res.Body == http.NoBody,
		keep: sent && !res.Close && res.StatusCode != http.StatusSwitchingProtocols,
	}
	return res, nil
}

// readHead reads the head of an answer, after those that only announce it.
func readHead(r *bufio.Reader) (*http.Response, error) {
	for {
		res, err := http.ReadResponse(r, nil)
		if err != nil || res.StatusCode >= 200 || res.StatusCode == http.StatusSwitchingProtocols {
			return res, err
		}
	}
}

func (c *http1Client) giveReader(r *bufio.Reader) {
	r.Reset(nil)
	c.readers.Put(r)
}

// take returns a connection that nobody uses, or a new one.
func (c *http1Client) take(ctx context.Context) (*conn, error) {
	for {
		c.mu.Lock()
		n := len(c.idle) - 1
		if n < 0 || time.Now().Before(c.staleUntil) {
			c.mu.Unlock()
			return c.dial(ctx)
		}
		k := c.idle[n]
		c.idle[n], c.idle = nil, c.idle[:n]
		c.mu.Unlock()
		if k.quiet() {
			k.used = true
			return k, nil
		}
		_ = k.Close() // the server has closed it
	}
}

// dial opens a connection. It takes a goroutine of its own: a handshake needs a large stack, which the caller would
// keep for the time of the exchange.
func (c *http1Client) dial(ctx context.Context) (*conn, error) {
	type dialed struct {
		conn net.Conn
		err  error
	}
	done := make(chan dialed)
	go func() {
		conn, err := c.dialServer(ctx)
		done <- dialed{conn, err}
	}()
	d := <-done
	if d.err != nil {
		return nil, d.err
	}
	return newConn(d.conn), nil
}

// give keeps a connection for the next exchange.
func (c *http1Client) give(k *conn) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return k.Close()
	}
	k.since = time.Now()
	c.idle = append(c.idle, k)
	if c.sweep == nil {
		c.sweep = time.AfterFunc(idleFor, c.prune)
	}
	return nil
}

// prune closes the connections that were not used for long.
func (c *http1Client) prune() {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for n < len(c.idle) && time.Since(c.idle[n].since) >= idleFor {
		_ = c.idle[n].Close() // nobody uses it
		n++
	}
	c.idle = append(c.idle[:0:0], c.idle[n:]...)
	if c.sweep = nil; len(c.idle) > 0 {
		c.sweep = time.AfterFunc(idleFor-time.Since(c.idle[0].since), c.prune)
	}
}

// Close closes the connections that no exchange is using, now and in the future.
func (c *http1Client) Close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.closeIdle()
}

// noteStale notes that the server has closed a connection that was kept. It may have closed the others too.
func (c *http1Client) noteStale() {
	c.mu.Lock()
	c.staleUntil = time.Now().Add(staleFor)
	c.mu.Unlock()
	c.closeIdle()
}

// closeIdle closes the connections that no exchange is using.
func (c *http1Client) closeIdle() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.idle {
		_ = k.Close() // nobody uses it
	}
	c.idle = nil
	if c.sweep != nil {
		c.sweep.Stop()
		c.sweep = nil
	}
}

// http1Body is the body of an answer.
type http1Body struct {
	c     *http1Client
	k     *conn // nil once it is closed
	r     *bufio.Reader
	in    io.Reader // net/http's, which knows where the body ends
	stop  func() bool
	ended bool // it was read to its end
	keep  bool // then the connection can be used again
}

func (b *http1Body) Read(p []byte) (int, error) {
	if b.k == nil {
		return 0, net.ErrClosed
	}
	n, err := b.in.Read(p)
	b.ended = b.ended || err == io.EOF
	return n, err
}

// Close releases the connection: for the next exchange, or for good.
func (b *http1Body) Close() error {
	k := b.k
	if k == nil {
		return nil
	}
	b.k, b.in = nil, nil
	again := b.ended && b.keep && b.r.Buffered() == 0
	b.c.giveReader(b.r)
	if !b.stop() || !again {
		return k.cut()
	}
	return b.c.give(k)
}

// conn is a connection that one exchange uses at a time.
type conn struct {
	net.Conn
	below net.Conn        // what TLS uses, or Conn itself
	raw   syscall.RawConn // of below; nil: not known
	since time.Time       // when the last exchange ended
	used  bool            // for an exchange before this one
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

// cut closes the connection without telling the server. Close of a TLS connection would wait for a server that does not read.
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

// awaitFirstByte waits for the first byte of the answer. No buffer is needed meanwhile.
func (k *conn) awaitFirstByte() error {
	for n := 0; n == 0; {
		var err error
		if n, err = k.Conn.Read(k.first[:]); err != nil && n == 0 {
			return err
		}
	}
	k.hasFirst = true
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

// appendHead appends the head of a request.
func appendHead(b []byte, req *http.Request) ([]byte, error) {
	target := req.URL.RequestURI()
	if !isToken(req.Method) || !isText(target) || !isText(req.Host) || strings.ContainsAny(target+req.Host, " ") {
		return b, fmt.Errorf("the method %q, the host %q or the path %q cannot be sent", req.Method, req.Host, target)
	}
	b = append(append(append(append(b, req.Method...), ' '), target...), " HTTP/1.1\r\nHost: "...)
	b = append(append(b, req.Host...), "\r\n"...)
	var few [16]string // on the stack
	names := few[:0]
	for name := range req.Header {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		switch name {
		case "Host", "Content-Length", "Transfer-Encoding", "Trailer": // they are ours
			continue
		}
		for _, value := range req.Header[name] {
			if !isToken(name) || !isText(value) {
				return b, fmt.Errorf("the header %q has a name or a value that cannot be sent", name)
			}
			b = append(append(append(append(b, name...), ": "...), strings.Trim(value, " \t")...), "\r\n"...)
		}
	}
	if size := req.ContentLength; size > 0 || req.Method == http.MethodPost || req.Method == http.MethodPut || req.Method == http.MethodPatch {
		b = append(strconv.AppendInt(append(b, "Content-Length: "...), size, 10), "\r\n"...)
	}
	return append(b, "\r\n"...), nil
}

// isText reports whether s can be a value in a head: it has no control characters but tabs.
func isText(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

// isToken reports whether s can be a name in a head.
func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		if letter := c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9'; !letter && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	return s != ""
}

// handshakeTimeout bounds the time of a TLS handshake.
const handshakeTimeout = 20 * time.Second

var errHandshake = errors.New("the TLS handshake took too long")

// handshake makes a TLS connection of raw, or closes it.
func handshake(ctx context.Context, raw net.Conn, config *tls.Config) (net.Conn, error) {
	c := tls.Client(raw, config)
	ctx, cancel := context.WithTimeoutCause(ctx, handshakeTimeout, errHandshake)
	defer cancel()
	err := c.HandshakeContext(ctx)
	if err == nil {
		return c, nil
	}
	_ = raw.Close() // it was not used
	if context.Cause(ctx) == errHandshake {
		err = errHandshake
	}
	return nil, err
}
