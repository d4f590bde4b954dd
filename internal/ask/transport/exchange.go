package transport

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"parley/internal/ask/redact"
	"parley/internal/ask/wire/eventstream"
	"parley/internal/ask/wire/fault"
	"parley/internal/kit/sse"
	"parley/llm"
)

// errSilent is the cause of a call that ends because the server was silent.
var errSilent = errors.New("the server was silent")

// longest bounds an answer that never ends, unless the timeout is longer. Package dispatch sets the
// deadlines of whole calls.
const longest = time.Hour

// maxKept is the size of the largest buffer that is kept for the next call.
const maxKept = 1 << 20

// afterEnd is the time a stream has to end after its last event. A connection can be used again
// only if the body is read to its end.
const afterEnd = 250 * time.Millisecond

// Request is one HTTP request below the provider's base URL.
type Request struct {
	Method string      // Default: POST
	Path   string      // such as /chat/completions, escaped; a query may follow
	Root   bool        // Path is below the server's root, not below the base URL
	Header http.Header // replaces the usual headers of the same name
	Body   []byte
	// Open returns the body if it is too large for memory, and Size is its length. It is called
	// again if the request is sent again with another key.
	Open func() (io.ReadCloser, error)
	Size int64
	// Timeout is the time until the header of the answer, for a body that takes long to send.
	// Default: the provider's.
	Timeout time.Duration
	// Hide removes the key in Header from the answer, if it is not the Client's. Default: the
	// Client's own.
	Hide *redact.Redactor

	from *outgoing // writes Body again; nil: Body stays
}

// ensureBody fills Body if it was released.
func (r *Request) ensureBody() error {
	if r.from == nil {
		return nil
	}
	return r.from.fill()
}

// memoryBody reads the Body of a Request, which it releases at its end if it can be written again.
type memoryBody struct {
	*Request
	at int
}

func (b *memoryBody) Read(p []byte) (n int, err error) {
	if n = copy(p, b.Body[b.at:]); n == 0 {
		return 0, io.EOF
	}
	b.at += n
	return n, nil
}

func (b *memoryBody) Close() error {
	if b.from != nil {
		b.from.free()
	}
	return nil
}

// Answer is the answer to a Request: the header, and a body that Bytes, Events or Lines reads once.
// Close it. Do not use what it returned after that.
type Answer struct {
	Header    http.Header
	FirstByte time.Duration // from sending to the header

	c     *Client
	url   *url.URL // of the request
	hide  *redact.Redactor
	lease lease
	start time.Time
	timer *time.Timer
	ctx   callContext
	sent  atomic.Bool   // all of the request: from then on the server may have done the work
	stale atomic.Bool   // it was sent over a connection that was used before
	out   memoryBody    // what http1Client sends
	in    *bytes.Reader // what net/http sends; nil if that is not a Body
	body  io.ReadCloser
	size  int64
	buf   *[]byte
	large bool          // it has one of the places of large answers
	whole bool          // Bytes reads the body
	quiet time.Duration // spent in Read since the last complete event
	spent time.Duration // spent in Read and Lines before that event
}

// Do sends call and waits for the header of its answer. A status outside 200 to 299 is an error.
func (c *Client) Do(ctx context.Context, call Request) (*Answer, error) { return c.do(ctx, &call) }

func (c *Client) do(ctx context.Context, call *Request) (*Answer, error) {
	a, status, err := c.raw(ctx, call)
	if err != nil {
		return nil, err
	}
	if status < 200 || status > 299 {
		err := a.refused(status)
		a.Close()
		return nil, err
	}
	return a, nil
}

// begins returns the time that a call has until the header of its answer.
func (c *Client) begins(call *Request) time.Duration { return max(c.timeout, call.Timeout) }

// silence returns our own reason for the end of a call, or err.
func (c *Client) silence(a *Answer, call *Request, err error) error {
	if a.ctx.reason() == errSilent {
		return &silentError{c.begins(call)}
	}
	return err
}

// silentError is errSilent with the time.
type silentError struct{ after time.Duration }

func (e *silentError) Error() string {
	return fmt.Sprintf("the server sent nothing for %v", e.after)
}

func (e *silentError) Unwrap() error { return errSilent }

// request returns the HTTP request of a call.
func (c *Client) request(ctx context.Context, call *Request, a *Answer, header http.Header) (*http.Request, error) {
	u, err := c.address(call)
	if err != nil {
		return nil, err
	}
	r := c.blank.WithContext(ctx)
	r.Method, r.URL, r.Host, r.Header = cmp.Or(call.Method, http.MethodPost), u, u.Host, header
	if len(call.Header) > 0 {
		r.Header = make(http.Header, len(header)+len(call.Header))
		maps.Copy(r.Header, header) // nobody changes the values
		for k, v := range call.Header {
			r.Header[http.CanonicalHeaderKey(k)] = v
		}
	}
	switch {
	case call.Open != nil:
		r.ContentLength = call.Size
		r.Body = &lateBody{Open: call.Open}
	case call.Body != nil:
		r.ContentLength = int64(len(call.Body))
		if a.lease.Transport == nil {
			a.out = memoryBody{Request: call}
			r.Body = &a.out
			break
		}
		a.in = bytes.NewReader(call.Body)
		r.Body = io.NopCloser(a.in) // net/http knows this type, and sends the header and the body together
	}
	return r, nil // without GetBody, net/http does not send it again
}

// address is the URL of a path.
type address struct {
	path string
	root bool
	url  *url.URL
}

// address returns the URL of a call. Most calls have the path of the call before. Do not change it.
func (c *Client) address(call *Request) (*url.URL, error) {
	if a := c.last.Load(); a != nil && a.path == call.Path && a.root == call.Root {
		return a.url, nil
	}
	u, err := c.join(call)
	if err == nil {
		c.last.Store(&address{call.Path, call.Root, u})
	}
	return u, err
}

// join returns the base URL with the path of a call.
func (c *Client) join(call *Request) (*url.URL, error) {
	u := *c.base
	if call.Root {
		u.Path, u.RawPath = "", ""
	}
	path, query, _ := strings.Cut(call.Path, "?")
	u.RawQuery = query
	if !strings.Contains(path, "%") && u.RawPath == "" {
		u.Path += path
		return &u, nil
	}
	raw := u.EscapedPath() + path
	plain, err := url.PathUnescape(raw)
	if err != nil {
		return nil, fmt.Errorf("path: %w", err)
	}
	u.Path, u.RawPath = plain, raw
	return &u, nil
}

// refused returns the error of an answer with a status that is not a success.
func (a *Answer) refused(status int) error {
	var b bytes.Buffer
	// It does not matter if the rest cannot be read.
	_, _ = io.Copy(&b, io.LimitReader(a.body, 64<<10))
	e := fault.Classify(status, a.Header, a.hide.Fault(b.Bytes()))
	e.Metadata.FirstByte, e.Metadata.Latency = a.FirstByte, time.Since(a.start)
	a.Misplaced(e)
	return e
}

// Bytes reads the whole body, which must be JSON. It must arrive within the timeout: a slow trickle
// of bytes does not extend it.
func (a *Answer) Bytes(ctx context.Context) ([]byte, error) {
	a.whole = true
	if a.size > maxBody {
		return nil, a.tooLarge()
	}
	a.buf = a.c.bufs.Get().(*[]byte)
	b := (*a.buf)[:0]
	// The server may lie about the length: it is only a hint for small answers.
	if n := int(min(a.size, 1<<20)); n >= cap(b) {
		b = make([]byte, 0, max(n+1, 1024))
	}
	for {
		n, err := a.body.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if len(b) > maxBody {
			return nil, a.tooLarge()
		}
		if err == io.EOF { // it may come with the last bytes
			break
		}
		if err != nil {
			return nil, a.cut(ctx, err)
		}
		if err := a.Keep(ctx, len(b)); err != nil {
			return nil, err
		}
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
	}
	*a.buf = b
	b = a.hide.Bytes(b)
	return b, fault.LooksJSON(b, a.Header.Get("Content-Type"))
}

// Events reads the body as a stream, until each returns true or the body ends. The caller
// knows whether the stream is complete.
func (a *Answer) Events(ctx context.Context, each func(sse.Event) (done bool, err error)) error {
	r := a.c.readers.Get().(*bufio.Reader)
	r.Reset(a.body)
	defer func() { r.Reset(nil); a.c.readers.Put(r) }()
	hidden := func(e sse.Event) (bool, error) {
		e.Data = a.hide.Bytes(e.Data)
		return each(e)
	}
	var done bool
	var err error
	if a.framed() {
		done, err = eventstream.Read(r, maxBody, a.alive, hidden)
	} else {
		done, err = sse.Read(r, maxBody, a.alive, hidden)
	}
	if done {
		a.timer.Reset(afterEnd)
		_, _ = io.Copy(io.Discard, io.LimitReader(r, 4096))
		return err
	}
	return a.read(ctx, err)
}

// Lines reads the body line by line, such as JSONL.
func (a *Answer) Lines(ctx context.Context, each func(line []byte) error) error {
	r := a.c.readers.Get().(*bufio.Reader)
	r.Reset(a.body)
	defer func() { r.Reset(nil); a.c.readers.Put(r) }()
	var line []byte
	for {
		// The caller may be slow: only the time spent reading counts.
		a.timer.Reset(min(a.c.timeout, a.c.longest()-a.spent))
		from := time.Now()
		var err error
		line, err = sse.ReadLine(r, line[:0], maxBody)
		a.spent += time.Since(from)
		if err == nil {
			a.timer.Stop()
		}
		if len(line) > 0 {
			if err := each(a.hide.Bytes(line)); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return a.read(ctx, err)
		}
	}
}

// framed reports whether the body is an event stream of AWS.
func (a *Answer) framed() bool {
	return strings.HasPrefix(a.Header.Get("Content-Type"), eventstream.MediaType)
}

// IsStream reports whether the body is a stream: server-sent events, or an event stream of AWS.
func (a *Answer) IsStream() bool {
	t := a.Header.Get("Content-Type")
	return a.framed() || len(t) >= 17 && strings.EqualFold(t[:17], "text/event-stream")
}

// Latency returns the time since the request was sent.
func (a *Answer) Latency() time.Duration { return time.Since(a.start) }

// Close ends the exchange and releases its connection and buffers.
func (a *Answer) Close() {
	a.timer.Stop()
	if a.body != nil {
		a.body.Close()
	}
	if a.large {
		a.c.places.leave()
		a.large = false
	}
	a.ctx.end(context.Canceled)
	a.c.pool.release(a.lease)
	if a.buf != nil && cap(*a.buf) <= maxKept {
		a.c.bufs.Put(a.buf)
	}
}

// alive extends the deadline after a complete line, up to the longest time of an answer.
func (a *Answer) alive() { a.timer.Reset(min(a.c.timeout, a.c.longest()-time.Since(a.start))) }

// longest returns the maximum time of an answer that keeps arriving.
func (c *Client) longest() time.Duration { return max(c.timeout, longest) }

// read turns an error of reading into an *llm.Error.
func (a *Answer) read(ctx context.Context, err error) error {
	var e *llm.Error
	switch {
	case err == nil, errors.As(err, &e):
		return err
	case errors.Is(err, sse.ErrTooLarge):
		return a.tooLarge()
	}
	return a.cut(ctx, err)
}

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
		return nil, 0, c.broken(ctx, ctx.Err())
	}
	s, err := c.authorize(ctx)
	if err != nil {
		return nil, 0, c.keyFailure(ctx, err)
	}
	a, status, err := c.once(ctx, call, s)
	if err != nil || status != http.StatusUnauthorized || call.Hide != nil || !c.keys.Refuse(s.key) {
		return a, status, err
	}
	next, err := c.authorize(ctx)
	if err != nil || next.key.Value == s.key.Value {
		return a, status, nil // the server's answer says what is wrong
	}
	if a.lease.Transport != nil {
		call.from = nil // net/http may still read the body, so it is not used for another call
	}
	a.Close()
	return c.once(ctx, call, next)
}

// keyFailure returns the error of a request for which there is no key.
func (c *Client) keyFailure(ctx context.Context, err error) error {
	if _, ok := errors.AsType[*llm.Error](err); ok {
		return err
	}
	return c.broken(ctx, err)
}

// once is raw with one key.
func (c *Client) once(ctx context.Context, call *Request, s *authHeader) (_ *Answer, status int, _ error) {
	a, req, err := c.prepare(ctx, call, s)
	if err != nil {
		return nil, 0, err
	}
	res, err := a.exchange(req)
	a.FirstByte = time.Since(a.start)
	if err != nil {
		e := c.broken(ctx, c.silence(a, call, err))
		if e.Uncertain = a.sent.Load() && !wasRefused(err); a.stale.Load() {
			e.Stale, e.Unreachable = true, false // another connection will show whether the server is there
		}
		a.Close()
		return nil, 0, e
	}
	if err := a.begin(res); err != nil {
		return nil, 0, err
	}
	return a, res.StatusCode, nil
}

// prepare returns the HTTP request of a call, and the Answer that will take what comes.
func (c *Client) prepare(ctx context.Context, call *Request, s *authHeader) (*Answer, *http.Request, error) {
	if err := call.ensureBody(); err != nil {
		return nil, nil, err
	}
	l, err := c.pool.take(ctx, call.Open == nil && len(call.Body) <= maxHTTP1Body)
	if err != nil {
		return nil, nil, c.broken(ctx, err)
	}
	a := &Answer{c: c, lease: l, start: time.Now()}
	a.ctx.begin(ctx)
	a.timer = time.AfterFunc(c.begins(call), func() { a.ctx.end(errSilent) })
	req, err := c.request(&a.ctx, call, a, s.header) //nolint:contextcheck // its parent is ctx
	if err != nil {
		a.Close()
		return nil, nil, c.broken(ctx, err)
	}
	a.url, a.hide = req.URL, cmp.Or(call.Hide, s.key.Hide)
	if sign := c.config.Sign; sign != nil {
		req.Header = req.Header.Clone()
		hide, err := sign(&a.ctx, req, call.Body) //nolint:contextcheck // its parent is ctx
		if err != nil {
			a.Close()
			return nil, nil, c.keyFailure(ctx, err)
		}
		a.hide = hide.And(a.hide)
	}
	return a, req, nil
}

// begin takes the header of the answer.
func (a *Answer) begin(res *http.Response) error {
	res.Request = nil // an answer may take long, and net/http keeps this and what was sent
	if a.in != nil && a.sent.Load() {
		a.in.Reset(nil)
	}
	a.c.markReached()
	a.Header, a.body, a.size = a.hide.Header(res.Header), res.Body, res.ContentLength
	a.timer.Reset(a.c.timeout)
	err := a.unzip()
	if err != nil {
		a.Close()
	}
	return err
}

// exchange sends a request and waits for the header of its answer.
func (a *Answer) exchange(req *http.Request) (*http.Response, error) {
	if a.lease.Transport == nil {
		res, err := a.c.pool.small.RoundTrip(req)
		a.sent.Store(err == nil)
		if failed, ok := errors.AsType[*exchangeError](err); ok {
			a.sent.Store(failed.sent)
			a.stale.Store(failed.reused)
		}
		return res, err
	}
	trace := &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) { a.stale.Store(info.Reused) },
		WroteRequest: func(info httptrace.WroteRequestInfo) {
			if info.Err == nil {
				a.sent.Store(true)
			}
		},
	}
	res, err := a.lease.Transport.RoundTrip(req.WithContext(httptrace.WithClientTrace(req.Context(), trace)))
	if err != nil && a.stale.Load() {
		a.lease.Transport.CloseIdleConnections() // the server may have closed the others too
	}
	return res, err
}

// Read reads some of the body of an answer from Raw, and returns io.EOF at its end. The timeout counts
// only the time spent in Read, from the beginning or from the last Alive, so that the caller may be
// slow. Any other error is an *llm.Error.
func (a *Answer) Read(ctx context.Context, p []byte) (int, error) {
	a.timer.Reset(min(a.c.timeout, a.c.longest()-a.spent) - a.quiet)
	from := time.Now()
	n, err := a.body.Read(p)
	a.quiet += time.Since(from)
	if err != nil && err != io.EOF {
		return n, a.cut(ctx, err)
	}
	a.timer.Stop()
	return n, err
}

// Keep is for a caller of Read that keeps the whole body. bytes is what it has of it. Few large bodies are kept at once, so Keep
// may wait. That does not count as silence of the server. Close lets the next one in.
func (a *Answer) Keep(ctx context.Context, bytes int) error {
	if a.large || bytes < LargeSize {
		return nil
	}
	a.timer.Stop()
	if err := a.c.places.enter(&a.ctx); err != nil { //nolint:contextcheck // its parent is ctx
		return a.cut(ctx, err)
	}
	a.large = true
	a.timer.Reset(a.c.timeout)
	return nil
}

// Alive restarts the timeout, after a complete event of a stream.
func (a *Answer) Alive() { a.spent, a.quiet = a.spent+a.quiet, 0 }

// Size returns the length of the body by its header, or -1 if it is unknown.
func (a *Answer) Size() int64 { return a.size }

// Drain reads the few bytes that may follow the last event of a stream, so that the connection can be
// used again.
func (a *Answer) Drain() {
	a.timer.Reset(afterEnd)
	_, _ = io.Copy(io.Discard, io.LimitReader(a.body, 4096)) // if it fails, the connection is closed
}

// Hide returns the Redactor for the body. Read does not remove the key.
func (a *Answer) Hide() *redact.Redactor { return a.hide }

// LooksJSON returns an error if a body cannot be JSON.
func (a *Answer) LooksJSON(b []byte) error { return fault.LooksJSON(b, a.Header.Get("Content-Type")) }

// callContext is the context of an exchange. It ends with the context of the call, and when end is called. It is what
// context.WithCancelCause and context.AfterFunc are together, but part of the Answer: very many exchanges may wait at once.
type callContext struct {
	context.Context             //nolint:containedctx // it is a context
	leave           func() bool // from the context of the call

	mu    sync.Mutex
	cause error         // nil: it has not ended
	done  chan struct{} // nil: nobody has asked for it
	after []*func()     // what is called at the end
}

// begin makes it a child of ctx. end must follow.
func (e *callContext) begin(ctx context.Context) {
	e.Context = ctx
	e.leave = context.AfterFunc(ctx, e.ended)
}

// ended is called when the context of the call has ended.
func (e *callContext) ended() { e.set(context.Cause(e.Context)) }

// end ends it, unless it has ended.
func (e *callContext) end(cause error) {
	e.leave()
	e.set(cause)
}

func (e *callContext) set(cause error) {
	e.mu.Lock()
	after := e.after
	if e.after = nil; e.cause == nil {
		e.cause = cause
		if e.done != nil {
			close(e.done)
		}
	}
	e.mu.Unlock()
	for _, f := range after {
		(*f)()
	}
}

// reason returns the cause of the end, or nil.
func (e *callContext) reason() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.cause
}

// Done implements context.Context.
func (e *callContext) Done() <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.done == nil {
		e.done = make(chan struct{})
		if e.cause != nil {
			close(e.done)
		}
	}
	return e.done
}

// Err implements context.Context.
func (e *callContext) Err() error {
	if e.reason() == nil {
		return nil
	}
	if err := e.Context.Err(); err != nil {
		return err
	}
	return context.Canceled
}

// AfterFunc calls f at the end, unless stop is called before. Package context looks for this method, and so does http1Client.
func (e *callContext) AfterFunc(f func()) (stop func() bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.cause != nil {
		go f()
		return func() bool { return false }
	}
	own := &f
	e.after = append(e.after, own)
	return func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		at := slices.Index(e.after, own)
		if at >= 0 {
			e.after = slices.Delete(e.after, at, at+1)
		}
		return at >= 0
	}
}

// LargeSize is the size from which an answer is large. Few answers are: it is the text of about 60,000 tokens.
const LargeSize = 256 << 10

// MaxLarge is how many large answers are kept at the same time.
const MaxLarge = 4

// largePlaces bounds the memory of large answers: at most MaxLarge of a client are kept at the same time, and the others wait. It bounds
// neither the number of small answers nor that of streams, which may take minutes and must not wait for each other.
type largePlaces chan struct{}

// enter waits for a place. leave must follow, unless it fails.
func (p largePlaces) enter(ctx context.Context) error {
	select {
	case p <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// leave frees a place.
func (p largePlaces) leave() { <-p }

// lateBody opens the body of a request when it is first read.
type lateBody struct {
	Open func() (io.ReadCloser, error)
	rc   io.ReadCloser
}

// Read implements io.Reader.
func (b *lateBody) Read(p []byte) (int, error) {
	if b.rc == nil {
		rc, err := b.Open()
		if err != nil {
			return 0, err
		}
		b.rc = rc
	}
	return b.rc.Read(p)
}

// Close closes the body if it was opened.
func (b *lateBody) Close() error {
	if b.rc == nil {
		return nil
	}
	return b.rc.Close()
}

// unzip decompresses the body if the server compressed it, although we did not ask for it.
func (a *Answer) unzip() error {
	switch enc := strings.ToLower(a.Header.Get("Content-Encoding")); enc {
	case "", "identity":
		return nil
	case "gzip", "x-gzip":
		a.size = -1
		a.body = &zippedBody{ReadCloser: a.body}
		return nil
	default:
		return fault.Malformed(fmt.Sprintf("the answer is encoded as %q, which we did not ask for", enc), nil)
	}
}

// zippedBody decompresses a body. It reads nothing before it is read, and its Close is that of the body.
type zippedBody struct {
	io.ReadCloser
	plain *gzip.Reader
}

func (b *zippedBody) Read(p []byte) (int, error) {
	if b.plain == nil {
		z, err := gzip.NewReader(b.ReadCloser)
		if err != nil {
			return 0, fmt.Errorf("gzip: %w", err)
		}
		b.plain = z
	}
	return b.plain.Read(p)
}
