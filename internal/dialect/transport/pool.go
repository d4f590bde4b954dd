package transport

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// maxStreams is how many calls share an HTTP/2 connection. Servers commonly allow
// 100 and more; staying below means that no call waits inside the transport.
const maxStreams = 90

// pool hands out transports. Over HTTP/1.1 there is one, which keeps as many idle
// connections as were ever in use. Over HTTP/2 there are as many as are needed, each
// held to one connection: a single transport dials once per call in a burst.
type pool struct {
	plain *http.Transport
	large *http.Transport // for long prompts: a buffer that holds much of one saves writes

	shared bool // HTTP/2 is wanted
	secure bool

	// Whether a TLS server speaks HTTP/2 is known only after a handshake. Until then
	// one call at a time goes ahead, holding gate; ready is closed when it is known.
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

// lane is a transport held by one call.
type lane struct {
	rt    *http.Transport
	shard *shard
	scout bool // it holds the gate
}

func newPool(shared, secure bool) *pool {
	p := &pool{shared: shared, secure: secure, gate: make(chan struct{}, 1), ready: make(chan struct{})}
	p.plain, p.large = oldTransport(smallBuffer), oldTransport(largeBuffer)
	if !secure {
		p.once.Do(func() { close(p.ready) })
	}
	return p
}

const (
	smallBuffer = 2 << 10
	largeBuffer = 16 << 10
	longBody    = 8 << 10 // of a request, worth a large buffer
)

// oldTransport makes one for HTTP/1.1, which keeps as many connections as were ever in use.
func oldTransport(writeBuffer int) *http.Transport {
	t := transport()
	t.WriteBufferSize = writeBuffer
	t.Protocols = new(http.Protocols)
	t.Protocols.SetHTTP1(true)
	t.MaxIdleConnsPerHost = 1 << 17
	return t
}

// http1 returns the HTTP/1.1 transport for a request with a body of that size.
func (p *pool) http1(size int) *http.Transport {
	if size > longBody {
		return p.large
	}
	return p.plain
}

// transport makes one tuned for very many small exchanges: the buffers are per
// connection, and requests larger than one bypass it.
func transport() *http.Transport {
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout:    20 * time.Second,
		IdleConnTimeout:        90 * time.Second,
		ReadBufferSize:         smallBuffer,
		WriteBufferSize:        smallBuffer,
		MaxResponseHeaderBytes: 256 << 10,
		DisableCompression:     true, // answers are small; one that comes compressed is read all the same
	}
}

// take returns a transport for one call with a body of that size; give must follow.
func (p *pool) take(ctx context.Context, size int) (lane, error) {
	if !p.shared {
		return lane{rt: p.http1(size)}, nil
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
			return lane{}, context.Cause(ctx)
		}
	}
	if p.old.Load() {
		return lane{rt: p.http1(size), scout: scout}, nil
	}
	s := p.board()
	return lane{rt: s.Transport, shard: s, scout: scout}, nil
}

func (p *pool) give(l lane) {
	if l.scout {
		<-p.gate
	}
	if l.shard != nil {
		p.mu.Lock()
		l.shard.load--
		p.mu.Unlock()
	}
}

// board takes a place on the first connection that has one, or on a new one.
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
	p.large.CloseIdleConnections()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.shards {
		s.CloseIdleConnections()
	}
}
