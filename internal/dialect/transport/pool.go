package transport

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// maxStreams is the number of calls that share an HTTP/2 connection. Most servers allow at least
// 100. With fewer, no call waits inside the transport.
const maxStreams = 90

// pool provides transports. One transport serves HTTP/1.1, and keeps every connection for later use.
// For HTTP/2 there are as many as needed, each with one connection, since a single transport would
// dial for every call of a burst.
type pool struct {
	plain *http.Transport

	shared bool // HTTP/2 is wanted
	secure bool

	// Only a handshake shows whether a TLS server speaks HTTP/2. Until then one call at a time
	// proceeds, and holds gate. ready is closed when it is known.
	gate  chan struct{}
	ready chan struct{}
	once  sync.Once
	old   atomic.Bool // the server speaks HTTP/1.1 only

	mu     sync.Mutex
	shards []*shard
}

type shard struct {
	*http.Transport
	load int // calls in flight, under pool.mu
}

// loan is a transport that one call uses.
type loan struct {
	rt    *http.Transport
	shard *shard
	scout bool // the call holds gate
}

func newPool(shared, secure bool) *pool {
	p := &pool{shared: shared, secure: secure, gate: make(chan struct{}, 1), ready: make(chan struct{})}
	p.plain = oldTransport()
	if !secure {
		p.once.Do(func() { close(p.ready) })
	}
	return p
}

// bufferSize is the size of a connection's buffers. It is small, since every connection has them.
const bufferSize = 2 << 10

// oldTransport returns a transport for HTTP/1.1 that keeps every connection.
func oldTransport() *http.Transport {
	t := transport()
	t.Protocols = new(http.Protocols)
	t.Protocols.SetHTTP1(true)
	t.MaxIdleConnsPerHost = 1 << 17
	return t
}

// transport returns a transport for very many small exchanges.
func transport() *http.Transport {
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            dial,
		TLSHandshakeTimeout:    20 * time.Second,
		IdleConnTimeout:        90 * time.Second,
		ReadBufferSize:         bufferSize,
		WriteBufferSize:        bufferSize,
		MaxResponseHeaderBytes: 256 << 10,
		DisableCompression:     true, // answers are small; a compressed one is still read
	}
}

// dial opens a connection.
func dial(ctx context.Context, network, address string) (net.Conn, error) {
	d := net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}
	c, err := d.DialContext(ctx, network, address)
	if tcp, ok := c.(*net.TCPConn); ok {
		return conn{tcp}, nil
	}
	return c, err
}

// conn writes a body that is in memory in one piece, from where it is. net/http would copy it first.
type conn struct{ *net.TCPConn }

// ReadFrom implements io.ReaderFrom, which net/http calls for the part of a body that does not fit
// into its buffer. It limits the body to its length, which is exact for one in memory.
func (c conn) ReadFrom(r io.Reader) (int64, error) {
	if l, ok := r.(*io.LimitedReader); ok {
		if body, ok := l.R.(io.WriterTo); ok {
			n, err := body.WriteTo(c.TCPConn)
			l.N -= n
			return n, err
		}
	}
	return c.TCPConn.ReadFrom(r)
}

// take returns a transport for one call. Call give after it.
func (p *pool) take(ctx context.Context) (loan, error) {
	if !p.shared {
		return loan{rt: p.plain}, nil
	}
	scout := false
	select {
	case <-p.ready:
	default:
		select {
		case <-p.ready:
		case p.gate <- struct{}{}:
			scout = true
		case <-ctx.Done():
			return loan{}, context.Cause(ctx)
		}
	}
	if p.old.Load() {
		return loan{rt: p.plain, scout: scout}, nil
	}
	s := p.board()
	return loan{rt: s.Transport, shard: s, scout: scout}, nil
}

func (p *pool) give(l loan) {
	if l.scout {
		<-p.gate
	}
	if l.shard != nil {
		p.mu.Lock()
		l.shard.load--
		p.mu.Unlock()
	}
}

// board returns the first connection with room for a call, or a new one.
func (p *pool) board() *shard {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.shards {
		if s.load < maxStreams {
			s.load++
			return s
		}
	}
	s := &shard{Transport: p.newShard(), load: 1}
	p.shards = append(p.shards, s)
	return s
}

func (p *pool) newShard() *http.Transport {
	t := transport()
	t.MaxConnsPerHost = 1
	t.ReadBufferSize, t.WriteBufferSize = 16<<10, 16<<10 // shared by all its calls
	t.Protocols = new(http.Protocols)
	if !p.secure {
		t.Protocols.SetUnencryptedHTTP2(true)
		return t
	}
	t.Protocols.SetHTTP1(true)
	t.Protocols.SetHTTP2(true)
	t.TLSClientConfig = &tls.Config{VerifyConnection: func(s tls.ConnectionState) error {
		if s.NegotiatedProtocol != "h2" {
			p.old.Store(true)
		}
		p.once.Do(func() { close(p.ready) })
		return nil
	}}
	return t
}

func (p *pool) close() {
	p.plain.CloseIdleConnections()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.shards {
		s.CloseIdleConnections()
	}
}
