package transport

import (
	"cmp"
	"context"
	"io"
	"time"

	"parley/internal/wire/fault"
	"parley/internal/wire/redact"
)

// Raw sends call and waits for the header of its answer, whatever its status: it is for
// who hands the answer on as it is. The body is then read with Read.
func (c *Client) Raw(ctx context.Context, call Call) (_ *Answer, status int, _ error) {
	if ctx.Err() != nil {
		return nil, 0, c.broken(ctx, ctx.Err(), false)
	}
	l, err := c.pool.take(ctx, max(len(call.Body), int(call.Size)))
	if err != nil {
		return nil, 0, c.broken(ctx, err, false)
	}
	inner, cancel := context.WithCancelCause(ctx)
	a := &Answer{c: c, lane: l, cancel: cancel, start: time.Now()}
	a.life = time.AfterFunc(c.begins(call), func() { cancel(errSilent) })
	req, err := c.request(inner, call, &a.sent)
	if err != nil {
		a.Close()
		return nil, 0, c.broken(ctx, err, false)
	}
	a.url = req.URL
	res, err := l.rt.RoundTrip(req)
	a.FirstByte = time.Since(a.start)
	if err != nil {
		err = c.broken(ctx, c.reason(inner, call, err), a.sent.Load())
		a.Close()
		return nil, 0, err
	}
	c.met()
	a.hide = cmp.Or(call.Hide, c.hide)
	a.Header, a.body, a.size = a.hide.Header(res.Header), res.Body, res.ContentLength
	a.life.Reset(c.timeout)
	if err := a.unzip(); err != nil {
		a.Close()
		return nil, 0, err
	}
	return a, res.StatusCode, nil
}

// Read reads some of the body of an answer that came by Raw, and returns io.EOF at its
// end. Only the time spent in it counts as silence of the server, so that a reader may be
// slow. All of the body must come within the timeout, or that much since the last Alive. Any
// other error is an *llm.Error.
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

// Alive notes that what was read is a sign of life: a whole event of a stream.
func (a *Answer) Alive() { a.spent, a.quiet = a.spent+a.quiet, 0 }

// Size is how long the body is by its header, or -1 where that is not known.
func (a *Answer) Size() int64 { return a.size }

// Drain reads what little may follow the last event of a stream, so that the connection
// can be used again.
func (a *Answer) Drain() {
	a.life.Reset(afterEnd)
	_, _ = io.Copy(io.Discard, io.LimitReader(a.body, 4096)) // if it fails, the connection is closed
}

// Hide is what takes the key out of the body, which Read does not do.
func (a *Answer) Hide() *redact.Redactor { return a.hide }

// LooksJSON says what is wrong with a body that cannot be JSON.
func (a *Answer) LooksJSON(b []byte) error { return fault.LooksJSON(b, a.Header.Get("Content-Type")) }
