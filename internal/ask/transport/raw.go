package transport

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"time"

	"parley/internal/ask/wire/fault"
	"parley/internal/kit/redact"
	"parley/llm"
)

// Raw sends call and waits for the header of its answer, whatever its status. It is for callers that
// relay the answer. They read the body with Read. If the server refuses a key that a program printed, the program is
// run again, and the request sent once more with its new key.
func (c *Client) Raw(ctx context.Context, call Request) (_ *Answer, status int, _ error) {
	return c.raw(ctx, &call)
}

// raw is Raw. Functions that wait for an answer keep little in their frames: very many calls may wait at once, and a
// goroutine that needs more than 8 KB of stack takes 16.
func (c *Client) raw(ctx context.Context, call *Request) (_ *Answer, status int, _ error) {
	if ctx.Err() != nil {
		return nil, 0, c.broken(ctx, ctx.Err(), false)
	}
	s, err := c.seal(ctx)
	if err != nil {
		return nil, 0, c.keyless(ctx, err)
	}
	a, status, err := c.once(ctx, call, s)
	if err != nil || status != http.StatusUnauthorized || call.Hide != nil || !c.keys.Refuse(s.key) {
		return a, status, err
	}
	next, err := c.seal(ctx)
	if err != nil || next.key.Value == s.key.Value {
		return a, status, nil // the server's answer says what is wrong
	}
	if a.loan.Transport != nil {
		call.from = nil // net/http may still read the body, so it is not used for another call
	}
	a.Close()
	a, status, err = c.once(ctx, call, next)
	if a != nil {
		a.again = true
	}
	return a, status, err
}

// keyless returns the error of a request for which there is no key.
func (c *Client) keyless(ctx context.Context, err error) error {
	if _, ok := errors.AsType[*llm.Error](err); ok {
		return err
	}
	return c.broken(ctx, err, false)
}

// once is raw with one key.
func (c *Client) once(ctx context.Context, call *Request, s *sealed) (_ *Answer, status int, _ error) {
	a, req, err := c.prepare(ctx, call, s)
	if err != nil {
		return nil, 0, err
	}
	res, err := a.exchange(req, call)
	a.FirstByte = time.Since(a.start)
	if err != nil {
		err = c.broken(ctx, c.reason(a, call, err), a.sent.Load())
		a.Close()
		return nil, 0, err
	}
	if err := a.begin(res); err != nil {
		return nil, 0, err
	}
	return a, res.StatusCode, nil
}

// prepare returns the HTTP request of a call, and the Answer that will take what comes.
func (c *Client) prepare(ctx context.Context, call *Request, s *sealed) (*Answer, *http.Request, error) {
	if err := call.load(); err != nil {
		return nil, nil, err
	}
	l, err := c.pool.Take(ctx, call.Open == nil && len(call.Body) <= maxHTTP1Body)
	if err != nil {
		return nil, nil, c.broken(ctx, err, false)
	}
	a := &Answer{c: c, loan: l, start: time.Now()}
	a.ending.begin(ctx)
	a.life = time.AfterFunc(c.begins(call), func() { a.ending.end(errSilent) })
	req, err := c.request(&a.ending, call, a, s.header) //nolint:contextcheck // its parent is ctx
	if err != nil {
		a.Close()
		return nil, nil, c.broken(ctx, err, false)
	}
	a.url, a.hide = req.URL, cmp.Or(call.Hide, s.key.Hide)
	if sign := c.style.Sign; sign != nil {
		req.Header = req.Header.Clone()
		hide, err := sign(&a.ending, req, call.Body) //nolint:contextcheck // its parent is ctx
		if err != nil {
			a.Close()
			return nil, nil, c.keyless(ctx, err)
		}
		a.hide = hide.And(a.hide)
	}
	return a, req, nil
}

// begin takes the header of the answer.
func (a *Answer) begin(res *http.Response) error {
	res.Request = nil // an answer may take long, and net/http keeps this and what was sent
	if a.in != nil && a.sent.Load() && !a.again {
		a.in.Reset(nil)
	}
	a.c.met()
	a.Header, a.body, a.size = a.hide.Header(res.Header), res.Body, res.ContentLength
	a.life.Reset(a.c.timeout)
	err := a.unzip()
	if err != nil {
		a.Close()
	}
	return err
}

// exchange sends a request and waits for the header of its answer.
func (a *Answer) exchange(req *http.Request, call *Request) (*http.Response, error) {
	if a.loan.Transport == nil {
		return a.c.pool.Small.Do(req, call.appendBody, func() { a.sent.Store(true) })
	}
	trace := &httptrace.ClientTrace{WroteRequest: func(info httptrace.WroteRequestInfo) {
		if info.Err == nil {
			a.sent.Store(true)
		}
	}}
	return a.loan.Transport.RoundTrip(req.WithContext(httptrace.WithClientTrace(req.Context(), trace)))
}

// Read reads some of the body of an answer from Raw, and returns io.EOF at its end. The timeout counts
// only the time spent in Read, from the beginning or from the last Alive, so that the caller may be
// slow. Any other error is an *llm.Error.
func (a *Answer) Read(ctx context.Context, p []byte) (int, error) {
	a.life.Reset(min(a.c.timeout, a.c.longest()-a.spent) - a.quiet)
	from := time.Now()
	n, err := a.body.Read(p)
	a.quiet += time.Since(from)
	if err != nil && err != io.EOF {
		return n, a.cut(ctx, err)
	}
	a.life.Stop()
	return n, err
}

// Keep is for a caller of Read that keeps the whole body. bytes is what it has of it. Few large bodies are kept at once, so Keep
// may wait. That does not count as silence of the server. Close lets the next one in.
func (a *Answer) Keep(ctx context.Context, bytes int) error {
	if a.large || bytes < Min {
		return nil
	}
	a.life.Stop()
	if err := a.c.places.Enter(&a.ending); err != nil { //nolint:contextcheck // its parent is ctx
		return a.cut(ctx, err)
	}
	a.large = true
	a.life.Reset(a.c.timeout)
	return nil
}

// Alive restarts the timeout, after a complete event of a stream.
func (a *Answer) Alive() { a.spent, a.quiet = a.spent+a.quiet, 0 }

// Size returns the length of the body by its header, or -1 if it is unknown.
func (a *Answer) Size() int64 { return a.size }

// Drain reads the few bytes that may follow the last event of a stream, so that the connection can be
// used again.
func (a *Answer) Drain() {
	a.life.Reset(afterEnd)
	_, _ = io.Copy(io.Discard, io.LimitReader(a.body, 4096)) // if it fails, the connection is closed
}

// Hide returns the Redactor for the body. Read does not remove the key.
func (a *Answer) Hide() *redact.Redactor { return a.hide }

// LooksJSON returns an error if a body cannot be JSON.
func (a *Answer) LooksJSON(b []byte) error { return fault.LooksJSON(b, a.Header.Get("Content-Type")) }
