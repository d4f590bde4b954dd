package transport

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"parley/internal/ask/wire/fault"
	"parley/internal/kit/eventstream"
	"parley/internal/kit/redact"
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
	// again if the request is sent again.
	Open func() (io.ReadCloser, error)
	Size int64
	// Once does not send the request again if a connection breaks, since the server may have seen it. A request whose key
	// was refused is sent again with a new key all the same: that server has done nothing.
	Once bool
	// Timeout is the time until the header of the answer, for a body that takes long to send.
	// Default: the provider's.
	Timeout time.Duration
	// Hide removes the key in Header from the answer, if it is not the Client's. Default: the
	// Client's own.
	Hide *redact.Redactor

	from *outgoing // writes Body again; nil: Body stays
}

// load sees to it that Body is there.
func (r *Request) load() error {
	if r.from == nil {
		return nil
	}
	return r.from.fill()
}

// appendBody appends Body to b, and lets it go if it can be written again.
func (r *Request) appendBody(b []byte) ([]byte, error) {
	if err := r.load(); err != nil {
		return b, err
	}
	b = append(b, r.Body...)
	if r.from != nil {
		r.from.free()
	}
	return b, nil
}

// Answer is the answer to a Request: the header, and a body that Bytes, Events or Lines reads once.
// Close it. Do not use what it returned after that.
type Answer struct {
	Header    http.Header
	FirstByte time.Duration // from sending to the header

	c      *Client
	url    *url.URL // of the request
	hide   *redact.Redactor
	loan   lease
	start  time.Time
	life   *time.Timer
	ending ending
	sent   atomic.Bool   // all of the request: from then on the server may have done the work
	again  bool          // the body was opened again, for another connection
	in     *bytes.Reader // what is sent; nil if that is not a Body
	body   io.ReadCloser
	size   int64
	buf    *[]byte
	large  bool          // it has one of the places of large answers
	whole  bool          // Bytes reads the body
	quiet  time.Duration // spent in Read since the last complete event
	spent  time.Duration // spent in Read and Lines before that event
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

// reason returns our own reason for the end of a call, or err.
func (c *Client) reason(a *Answer, call *Request, err error) error {
	if a.ending.why() == errSilent {
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
		open := call.Open
		r.GetBody = func() (io.ReadCloser, error) { return &lateBody{Open: open}, nil }
		r.Body = &lateBody{Open: open}
	case call.Body != nil:
		b := call.Body // so that the closure does not keep call
		r.ContentLength = int64(len(b))
		if a.loan.Transport == nil {
			r.GetBody = sendsAgain
			break
		}
		a.in = bytes.NewReader(b)
		// net/http knows this type, and sends the header and the body together.
		r.GetBody = func() (io.ReadCloser, error) {
			a.again = true
			return io.NopCloser(bytes.NewReader(b)), nil
		}
		r.Body = io.NopCloser(a.in)
	}
	if call.Once {
		r.GetBody = nil
	}
	return r, nil
}

// sendsAgain says to http1 that a request may be sent again.
func sendsAgain() (io.ReadCloser, error) { return nil, errors.ErrUnsupported }

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
	if a.size > a.c.maxBody {
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
		if int64(len(b)) > a.c.maxBody {
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
		done, err = eventstream.Read(r, a.c.maxBody, a.alive, hidden)
	} else {
		done, err = sse.Read(r, a.c.maxBody, a.alive, hidden)
	}
	if done {
		a.life.Reset(afterEnd)
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
		a.life.Reset(min(a.c.timeout, a.c.longest()-a.spent))
		from := time.Now()
		var err error
		line, err = sse.ReadLine(r, line[:0], a.c.maxBody)
		a.spent += time.Since(from)
		if err == nil {
			a.life.Stop()
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
	a.life.Stop()
	if a.body != nil {
		a.body.Close()
	}
	if a.large {
		a.c.places.Leave()
		a.large = false
	}
	a.ending.end(context.Canceled)
	a.c.pool.Give(a.loan)
	if a.buf != nil && cap(*a.buf) <= maxKept {
		a.c.bufs.Put(a.buf)
	}
}

// alive extends the deadline after a complete line, up to the longest time of an answer.
func (a *Answer) alive() { a.life.Reset(min(a.c.timeout, a.c.longest()-time.Since(a.start))) }

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
