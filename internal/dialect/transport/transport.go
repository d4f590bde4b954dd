// Package transport is the HTTP underneath every dialect: connections, deadlines,
// bounded bodies, server-sent events, and the one place where what a server says
// or fails to say becomes an *llm.Error with its Kind.
//
// What it promises: no call outlives its context or the provider's Timeout without
// a sign of life, which is the header, and then a whole line or event of a stream, or else the
// whole body; no stream lasts over an hour, or the Timeout; no answer is read beyond its bound; a
// call starts no goroutine of its own; and nothing that leaves the package holds the key, even
// when a server echoes it in a header, a body or an error: see package redact. A Client may be
// used from any number of goroutines at once.
//
// One request is sent at most once, with one exception. A server may close a
// kept-alive connection just as a request is put on it; when that connection ends
// before the first byte of an answer, the request goes out again on another. The
// server has then, as good as always, not seen it. All other trying again is
// dispatch's.
//
// What it is not for: it knows no dialect's requests and answers, and it does not
// wait and retry.
package transport

import (
	"bufio"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"parley/internal/provider"
	"parley/internal/wire/redact"
)

const (
	defaultTimeout = 10 * time.Minute
	defaultMaxBody = 64 << 20
)

// Config is what a dialect adds to a provider's data.
type Config struct {
	KeyHeader string            // the header that carries the key. Default: Authorization
	KeyPrefix string            // what stands before the key there, such as "Bearer "
	Header    map[string]string // sent with every request; the provider's own headers win
	MaxBody   int64             // most bytes of an answer. Default: 64 MB
}

// Client speaks HTTP to one provider.
type Client struct {
	name    string
	base    *url.URL
	header  http.Header // shared by all requests: never written after New
	hide    *redact.Redactor
	timeout time.Duration
	maxBody int64
	pool    *pool
	reached atomic.Bool // it has answered once
	bufs    sync.Pool   // *[]byte, of answers
	readers sync.Pool   // *bufio.Reader, of streams
}

// New makes the Client of a provider. It reads the key from the environment: a
// variable that is named but not set is an error.
func New(p provider.Provider, c Config) (*Client, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	if len(p.BaseURLs) > 0 {
		return nil, fmt.Errorf("provider %s: base_urls: this is for one server: give it a base_url", p.Name)
	}
	base, err := url.Parse(strings.TrimRight(p.BaseURL, "/"))
	if err != nil {
		return nil, fmt.Errorf("provider %s: base_url: is not an address", p.Name)
	}
	key, err := readKey(p)
	if err != nil {
		return nil, err
	}
	w := &Client{
		name: p.Name, base: base, hide: redact.New(key), timeout: p.Timeout, maxBody: c.MaxBody,
		header: headers(p, c, key), pool: newPool(p.HTTP2, base.Scheme == "https"),
	}
	if w.timeout == 0 {
		w.timeout = defaultTimeout
	}
	if w.maxBody == 0 {
		w.maxBody = defaultMaxBody
	}
	w.bufs.New = func() any { return new([]byte) }
	w.readers.New = func() any { return bufio.NewReaderSize(nil, 4096) }
	return w, nil
}

// Close closes the connections that no call is using.
func (c *Client) Close() error {
	c.pool.close()
	return nil
}

func readKey(p provider.Provider) (string, error) {
	if p.KeyEnv == "" {
		return "", nil
	}
	key := strings.TrimSpace(os.Getenv(p.KeyEnv))
	if key == "" {
		return "", fmt.Errorf("provider %s: the environment variable %s is not set; export it with your key, or use sim/any to play without one", p.Name, p.KeyEnv)
	}
	if strings.ContainsFunc(key, func(r rune) bool { return r < ' ' || r > '~' }) {
		return "", fmt.Errorf("provider %s: the value of %s holds a character that no key has", p.Name, p.KeyEnv)
	}
	return key, nil
}

func headers(p provider.Provider, c Config, key string) http.Header {
	h := http.Header{"Content-Type": {"application/json"}, "User-Agent": {"parley"}}
	// An empty list is not sent. It tells net/http that the request may go out again
	// when a kept-alive connection turns out to be dead: see the package comment.
	h["X-Idempotency-Key"] = []string{}
	for k, v := range c.Header {
		h.Set(k, v)
	}
	for k, v := range p.Headers {
		h.Set(k, v)
	}
	if key != "" {
		name := c.KeyHeader
		if name == "" {
			name = "Authorization"
		}
		h.Set(name, c.KeyPrefix+key)
	}
	return h
}

// Hide is what takes the key out of what the server sends; nil where there is none.
func (c *Client) Hide() *redact.Redactor { return c.hide }
