package transport

import (
	"cmp"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"
)

// maxStreams is the number of calls that share an HTTP/2 connection. Most servers allow at least
// 100. With fewer, no call waits inside the transport.
const maxStreams = 90

// connPool has the connections to one server. An http1Client makes the exchanges over HTTP/1.1, except those that it is not
// for. A call over HTTP/2 never waits for room on a connection, and connections are used again. For HTTP/2
// there are as many transports as needed, each with one connection, since a single transport would dial for every call of
// a burst.
type connPool struct {
	small         *http1Client
	smallUnusable bool // small can never be used

	plain *http.Transport // for HTTP/1.1 where small cannot be used

	http2  bool // HTTP/2 is wanted
	secure bool

	// Only a handshake shows whether a TLS server speaks HTTP/2. Until then one call at a time
	// proceeds, and holds gate. ready is closed when it is known.
	gate      chan struct{}
	ready     chan struct{}
	once      sync.Once
	http1Only atomic.Bool // the server speaks HTTP/1.1 only

	mu     sync.Mutex
	shards []*shard
}

type shard struct {
	*http.Transport
	load int // calls in flight, under connPool.mu
}

// lease is what one call uses.
type lease struct {
	Transport *http.Transport // nil: connPool.small

	shard     *shard
	holdsGate bool // the call holds gate
}

// newPool returns the pool of the server of a URL.
func newPool(http2 bool, base *url.URL) *connPool {
	secure := base.Scheme == "https"
	p := &connPool{http2: http2, secure: secure, gate: make(chan struct{}, 1), ready: make(chan struct{})}
	p.plain = http1Transport()
	p.small = &http1Client{dialServer: dialer(base)}
	proxy, err := http.ProxyFromEnvironment(&http.Request{URL: base})
	p.smallUnusable = proxy != nil || err != nil || base.User != nil || !isASCII(base.Host)
	if !secure {
		p.once.Do(func() { close(p.ready) })
	}
	return p
}

// bufferSize is the size of a connection's buffers. It is small, since every connection has them.
const bufferSize = 2 << 10

// http1Transport returns a transport for HTTP/1.1 that keeps every connection.
func http1Transport() *http.Transport {
	t := newTransport()
	t.Protocols = new(http.Protocols)
	t.Protocols.SetHTTP1(true)
	t.MaxIdleConnsPerHost = 1 << 17
	return t
}

// newTransport returns a transport for very many small exchanges.
func newTransport() *http.Transport {
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            dial,
		TLSHandshakeTimeout:    handshakeTimeout,
		IdleConnTimeout:        90 * time.Second,
		ReadBufferSize:         bufferSize,
		WriteBufferSize:        bufferSize,
		MaxResponseHeaderBytes: maxHead,
		DisableCompression:     true, // answers are small; a compressed one is still read
	}
}

// dial opens a connection.
func dial(ctx context.Context, network, address string) (net.Conn, error) {
	d := net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}
	return d.DialContext(ctx, network, address)
}

// dialer returns the function that opens a connection for HTTP/1.1.
func dialer(base *url.URL) func(context.Context) (net.Conn, error) {
	host, port := base.Hostname(), base.Port()
	if base.Scheme != "https" {
		address := net.JoinHostPort(host, cmp.Or(port, "80"))
		return func(ctx context.Context) (net.Conn, error) { return dial(ctx, "tcp", address) }
	}
	address := net.JoinHostPort(host, cmp.Or(port, "443"))
	config := &tls.Config{ServerName: host, NextProtos: []string{"http/1.1"}, MinVersion: tls.VersionTLS12}
	return func(ctx context.Context) (net.Conn, error) {
		raw, err := dial(ctx, "tcp", address)
		if err != nil {
			return nil, err
		}
		return handshake(ctx, raw, config)
	}
}

// isASCII reports whether a host can be sent as it is.
func isASCII(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
}

// forHTTP1 returns the lease of a call over HTTP/1.1.
func (p *connPool) forHTTP1(small, holdsGate bool) lease {
	if p.smallUnusable || !small {
		return lease{Transport: p.plain, holdsGate: holdsGate}
	}
	return lease{holdsGate: holdsGate}
}

// take returns what one call uses. small means that an http1Client can send the body of the call. Call release after it.
func (p *connPool) take(ctx context.Context, small bool) (lease, error) {
	if !p.http2 {
		return p.forHTTP1(small, false), nil
	}
	holdsGate := false
	select {
	case <-p.ready:
	default:
		select {
		case <-p.ready:
		case p.gate <- struct{}{}:
			holdsGate = true
		case <-ctx.Done():
			return lease{}, context.Cause(ctx)
		}
	}
	if p.http1Only.Load() {
		return p.forHTTP1(small, holdsGate), nil
	}
	s := p.takeShard()
	return lease{Transport: s.Transport, shard: s, holdsGate: holdsGate}, nil
}

// release returns what take returned.
func (p *connPool) release(l lease) {
	if l.holdsGate {
		<-p.gate
	}
	if l.shard != nil {
		p.mu.Lock()
		l.shard.load--
		p.mu.Unlock()
	}
}

// takeShard returns the first connection with room for a call, or a new one.
func (p *connPool) takeShard() *shard {
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

func (p *connPool) newShard() *http.Transport {
	t := newTransport()
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
			p.http1Only.Store(true)
		}
		p.once.Do(func() { close(p.ready) })
		return nil
	}}
	return t
}

// close closes the connections that no call is using.
func (p *connPool) close() {
	p.small.Close()
	p.plain.CloseIdleConnections()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.shards {
		s.CloseIdleConnections()
	}
}
