// Package transport is the HTTP underneath every dialect: connections, deadlines, bounded bodies and
// server-sent events. It turns every failure into an *llm.Error with its Kind.
//
// It promises that a call ends with its context, and when the server sends nothing complete for the
// provider's Timeout: a header, a line or event of a stream, or a whole body. No stream lasts longer
// than an hour, or the Timeout if that is longer. No answer is read beyond its limit, and few large ones are kept at once. A call leaves
// no goroutine behind. Nothing that leaves the package holds the key, even if a server echoes it: see
// package redact. A Client may be used from several goroutines at once.
//
// A request is sent once, so that whoever pays for it knows of every attempt, with two exceptions. One that is refused with 401 is sent
// again if there is a new key, and a GET if the server has closed the idle connection that it was sent on. The error of
// a call says whether it was sent (Uncertain), and whether over such a connection (Stale). Package dispatch does all
// other retries.
//
// It does not know the requests and answers of any dialect.
package transport

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"parley/internal/ask/credential"
	"parley/internal/ask/provider"
	"parley/internal/ask/redact"
)

const (
	defaultTimeout = 10 * time.Minute
	maxBody        = 64 << 20 // bytes of an answer
)

// Config is what a dialect adds to the data of a provider.
type Config struct {
	KeyHeader string            // the header that carries the key. Default: Authorization
	KeyPrefix string            // before the key, such as "Bearer "
	Header    map[string]string // sent with every request; the provider's headers replace it
	// Sign adds a signature to the header of a request, which is its own. hide removes from the answer what it added.
	// Default: requests are not signed.
	Sign func(ctx context.Context, r *http.Request, body []byte) (hide *redact.Redactor, err error)
}

// Client speaks HTTP to one provider.
type Client struct {
	name    string
	base    *url.URL
	keys    *credential.Source
	config  Config
	p       provider.Provider
	auth    atomic.Pointer[authHeader]
	blank   *http.Request // a request without its parts; never changed
	timeout time.Duration
	pool    *connPool
	reached atomic.Bool // the server has answered once
	last    atomic.Pointer[address]
	bufs    sync.Pool // *[]byte, of answers
	bodies  sync.Pool // *[]byte, of requests
	readers sync.Pool // *bufio.Reader, of streams
	places  largePlaces
}

// authHeader is the header of all requests with one key. It is never written.
type authHeader struct {
	key    *credential.Key
	header http.Header
}

// New returns the Client of a provider, with the keys of a Source that several clients may share; nil: it reads the key from the environment. It is
// an error if the variable is not set.
func New(p provider.Provider, c Config, keys *credential.Source) (*Client, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	if len(p.BaseURLs) > 0 {
		return nil, fmt.Errorf("provider %s: base_urls: want one server; use base_url", p.Name)
	}
	base, err := url.Parse(strings.TrimRight(p.BaseURL, "/"))
	if err != nil {
		return nil, fmt.Errorf("provider %s: base_url: it is not a URL", p.Name)
	}
	if keys == nil {
		if keys, err = credential.New(p); err != nil {
			return nil, err
		}
	}
	w := &Client{
		name: p.Name, base: base, timeout: p.Timeout,
		keys: keys, config: c, p: p, blank: &http.Request{Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}, pool: newPool(p.HTTP2, base), places: make(largePlaces, MaxLarge),
	}
	if w.timeout == 0 {
		w.timeout = defaultTimeout
	}
	w.bufs.New = func() any { return new([]byte) }
	w.bodies.New = w.bufs.New
	w.readers.New = func() any { return bufio.NewReaderSize(nil, 4096) }
	return w, nil
}

// Close closes the connections that no call is using.
func (c *Client) Close() error {
	c.pool.close()
	return nil
}

// authorize returns the header with the key to send now. It may wait for the key.
func (c *Client) authorize(ctx context.Context) (*authHeader, error) {
	key, err := c.keys.Key(ctx)
	if err != nil {
		return nil, err
	}
	if s := c.auth.Load(); s != nil && s.key == key {
		return s, nil
	}
	s := &authHeader{key, headers(&c.p, &c.config, key)}
	c.auth.Store(s)
	return s, nil
}

func headers(p *provider.Provider, c *Config, key *credential.Key) http.Header {
	h := http.Header{"Content-Type": {"application/json"}, "User-Agent": {"parley"}}
	for k, v := range c.Header {
		h.Set(k, v)
	}
	for k, v := range p.Headers {
		h.Set(k, v)
	}
	if key.Project != "" {
		h.Set("X-Goog-User-Project", key.Project)
	}
	if key.Value != "" {
		name, prefix := cmp.Or(c.KeyHeader, "Authorization"), c.KeyPrefix
		if p.KeyHeader != "" {
			if name, prefix = p.KeyHeader, ""; strings.EqualFold(name, "Authorization") {
				prefix = "Bearer "
			}
		}
		h.Set(name, prefix+key.Value)
	}
	return h
}

// Hide returns the Redactor for what the server sends, or nil if there is no key.
func (c *Client) Hide() *redact.Redactor { return c.keys.Last().Hide }
