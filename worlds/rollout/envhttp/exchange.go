// Part exchange sends requests to environment servers over HTTP, each at most once. Every failure is an
// *llm.Error that says whether the server may have acted.
//
// It promises that no request is sent twice, not even by net/http, and that no answer is read beyond its
// limit. It is not for any protocol: packages v1 and openenv are.

package envhttp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"parley/llm"
)

// maxExchangeBody is the maximum size of an answer: screenshots are large.
const maxExchangeBody = 64 << 20

// keyHeader is the header with the name of a step.
const keyHeader = "Idempotency-Key"

// Client sends requests to one server. It is safe for concurrent use.
type Client struct {
	base string
	// There is no http.Client, since redirects and cookies are not wanted and cost time.
	transport *http.Transport
}

// newExchange returns a client of the server at an address, with as many connections as sessions.
func newExchange(address string, sessions int) *Client {
	return &Client{base: strings.TrimRight(address, "/"), transport: exchangeTransport(sessions + 8)}
}

// exchangeTransport returns a transport that keeps this many idle connections.
func exchangeTransport(idle int) *http.Transport {
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}).DialContext,
		MaxIdleConns:        idle,
		MaxIdleConnsPerHost: idle,
		// Below the five seconds after which common servers close connections: the result of a step on a
		// closing connection would be unknown.
		IdleConnTimeout: 4 * time.Second,
	}
}

// Name returns the server's address.
func (c *Client) Name() string { return c.base }

// Close closes idle connections.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// Do sends one request and decodes its answer into into, unless that is nil. A json.Unmarshaler must itself
// reject invalid JSON. key names the request, or is empty.
func (c *Client) Do(ctx context.Context, method, path, key string, body, into any) error {
	var payload []byte
	if body != nil {
		var err error
		if payload, err = json.Marshal(body); err != nil {
			return &llm.Error{Kind: llm.KindBadRequest, Status: http.StatusBadRequest, Provider: c.base, Message: err.Error(), Err: err}
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, nil)
	if err != nil {
		return &llm.Error{Kind: llm.KindBadRequest, Provider: c.base, Message: "is no address", Err: err}
	}
	// With a body that cannot be read again net/http never sends a request twice, not even a GET, which
	// changes some environments. An empty body is not sent.
	req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(payload)), int64(len(payload))
	if len(payload) == 0 {
		req.ContentLength = -1
	}
	req.Header = http.Header{"User-Agent": {"parley"}}
	if body != nil {
		req.Header["Content-Type"] = []string{"application/json"}
	}
	if key != "" {
		req.Header[keyHeader] = []string{key}
	}
	resp, err := c.transport.RoundTrip(req)
	if err != nil {
		return exchangeBroken(ctx, c.base, err)
	}
	defer resp.Body.Close()
	text, err := readExchange(resp)
	if err != nil {
		return exchangeBroken(ctx, c.base, err)
	}
	if len(text) > maxExchangeBody {
		return exchangeMalformed(c.base, fmt.Errorf("an answer of more than %d bytes", maxExchangeBody))
	}
	if resp.StatusCode != http.StatusOK {
		return c.refused(resp, text)
	}
	if into == nil {
		return nil
	}
	if err := decode(text, into); err != nil {
		what := path[strings.LastIndexByte(path, '/')+1:] // reset, step: the ids before it differ
		return wrongForm(c.base, text, fmt.Errorf("%s: %w", what, err))
	}
	return nil
}

// readExchange reads an answer, up to one byte beyond the limit.
func readExchange(resp *http.Response) ([]byte, error) {
	var b bytes.Buffer
	if n := resp.ContentLength; n > 0 {
		b.Grow(int(min(n, 1<<20)) + bytes.MinRead) // the size is only what the server claims
	}
	_, err := b.ReadFrom(io.LimitReader(resp.Body, maxExchangeBody+1))
	return b.Bytes(), err
}

// exchangeBroken returns the error of an exchange with a server that was interrupted.
func exchangeBroken(ctx context.Context, address string, err error) error {
	if ctx.Err() != nil {
		e := *llm.ContextError(ctx)
		e.Uncertain = true
		return &e
	}
	e := &llm.Error{Kind: llm.KindTransport, Uncertain: true, Provider: address, Message: err.Error(), Err: err}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		e.Uncertain = false // nothing was sent
	}
	return e
}

// refused returns the error of a status other than 200.
func (c *Client) refused(resp *http.Response, text []byte) error {
	e := &llm.Error{Kind: llm.KindServer, Status: resp.StatusCode, Provider: c.base, Message: short(text)}
	switch code := resp.StatusCode; {
	case code == http.StatusNotFound:
		// The session is gone after a restart of the server: another try may succeed.
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		e.Kind = llm.KindAuth
	case code == http.StatusTooManyRequests || code == http.StatusServiceUnavailable:
		e.Kind = llm.KindOverloaded
	case code >= 500:
		e.Uncertain = true
	case code >= 400:
		e.Kind = llm.KindBadRequest
	default: // a redirect, or another success
		e.Kind, e.Uncertain = llm.KindMalformed, true
	}
	return e
}

// short returns the beginning of a server's message.
func short(text []byte) string {
	var detail struct {
		Detail string `json:"detail"`
		Error  string `json:"error"`
	}
	if json.Unmarshal(text, &detail) == nil && detail.Detail+detail.Error != "" {
		text = []byte(detail.Detail + detail.Error)
	}
	return strings.ToValidUTF8(fmt.Sprintf("%.300s", strings.TrimSpace(string(text))), "")
}
