package transport

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"parley/internal/wire/fault"
	"parley/internal/wire/redact"
	"parley/internal/wire/sse"
	"parley/llm"
)

// errSilent is the cause with which a call ends that gave no sign of life.
var errSilent = errors.New("no sign of life")

// longest bounds an answer that never ends, unless a longer timeout is set. Deadlines of
// whole calls are dispatch's.
const longest = time.Hour

// afterEnd is how long a stream may take to end after its last event. A body read
// to its end leaves its connection fit for the next call.
const afterEnd = 250 * time.Millisecond

// Call is one HTTP request below the provider's base URL.
type Call struct {
	Method string      // Default: POST
	Path   string      // such as /chat/completions, escaped; a query may follow
	Root   bool        // Path is below the server's root, not below the base URL
	Header http.Header // beside the usual ones; it wins over them
	Body   []byte
	// Open gives the body where it is too large to hold, and Size its length. It is
	// called again when the request goes out again.
	Open func() (io.ReadCloser, error)
	Size int64
	// Timeout is how long it may take until the header of the answer comes, where sending the
	// body alone takes long. Default: the provider's.
	Timeout time.Duration
	// Hide takes a key out of the answer that is not the Client's, but one in Header.
	// Default: the Client's own.
	Hide *redact.Redactor
}

// Answer is what came back: the header, and a body to be read once by Bytes, Events
// or Lines. It must be closed, and what it returned is not to be used after that.
type Answer struct {
	Header    http.Header
	FirstByte time.Duration // from sending to the header

	c      *Client
	url    *url.URL // that was asked
	hide   *redact.Redactor
	lane   lane
	start  time.Time
	life   *time.Timer
	cancel context.CancelCauseFunc
	sent   atomic.Bool
	body   io.ReadCloser
	size   int64
	buf    *[]byte
	whole  bool          // the body is read as one piece
	quiet  time.Duration // spent in Read since the last sign of life
	spent  time.Duration // in Read and Lines in all, up to that sign
}

// Do sends call and waits for the header of its answer. An answer that is not a
// success, of 200 to 299, is an error.
func (c *Client) Do(ctx context.Context, call Call) (*Answer, error) {
	a, status, err := c.Raw(ctx, call)
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

// begins is how long a call may take until the header of its answer comes.
func (c *Client) begins(call Call) time.Duration { return max(c.timeout, call.Timeout) }

// reason puts our own reason for ending a call in the place of what the transport
// made of it.
func (c *Client) reason(inner context.Context, call Call, err error) error {
	if context.Cause(inner) == errSilent {
		return &silentError{c.begins(call)}
	}
	return err
}

// silentError is what the caller is told of errSilent.
type silentError struct{ after time.Duration }

func (e *silentError) Error() string {
	return fmt.Sprintf("the server gave no sign of life for %v", e.after)
}

func (e *silentError) Unwrap() error { return errSilent }

// request makes the HTTP request of a call. sent is set once all of its body was read, to
// be written: from then on the server may have done the work.
func (c *Client) request(ctx context.Context, call Call, sent *atomic.Bool) (*http.Request, error) {
	method := call.Method
	if method == "" {
		method = http.MethodPost
	}
	r, err := http.NewRequestWithContext(ctx, method, "", nil)
	if err != nil {
		return nil, err
	}
	u, err := c.address(call)
	if err != nil {
		return nil, err
	}
	r.URL, r.Host, r.Header = u, u.Host, c.header
	if len(call.Header) > 0 {
		r.Header = c.header.Clone()
		for k, v := range call.Header {
			r.Header[http.CanonicalHeaderKey(k)] = v
		}
	}
	switch {
	case call.Open != nil:
		r.ContentLength = call.Size
		open := call.Open
		r.GetBody = func() (io.ReadCloser, error) { return &lateBody{open: open, sent: sent}, nil }
		r.Body = &lateBody{open: open, sent: sent}
	case call.Body != nil:
		r.ContentLength = int64(len(call.Body))
		b := call.Body // all that is to be held as long as the answer lasts
		r.GetBody = func() (io.ReadCloser, error) { return newBody(b, sent), nil }
		r.Body = newBody(b, sent)
	default:
		sent.Store(true)
	}
	return r, nil
}

// address is where a call goes.
func (c *Client) address(call Call) (*url.URL, error) {
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

// refused makes the error of an answer that is not a success.
func (a *Answer) refused(status int) error {
	var b bytes.Buffer
	// What could be read of it decides; that reading failed does not matter here.
	_, _ = io.Copy(&b, io.LimitReader(a.body, 64<<10))
	e := fault.Classify(status, a.Header, a.hide.Fault(b.Bytes()))
	e.Metadata.FirstByte, e.Metadata.Latency = a.FirstByte, time.Since(a.start)
	a.Misplaced(e)
	return e
}

// Bytes reads the whole body, which must be JSON. All of it must come within the timeout: a
// server that sends a byte now and then is not alive.
func (a *Answer) Bytes(ctx context.Context) ([]byte, error) {
	a.whole = true
	if a.size > a.c.maxBody {
		return nil, a.tooLarge()
	}
	a.buf = a.c.bufs.Get().(*[]byte)
	b := (*a.buf)[:0]
	// The length is a server's word: it is a hint for small answers only.
	if n := int(min(a.size, 1<<20)); n >= cap(b) {
		b = make([]byte, 0, max(n+1, 1024))
	}
	for {
		n, err := a.body.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, a.cut(ctx, err)
		}
		if int64(len(b)) > a.c.maxBody {
			return nil, a.tooLarge()
		}
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
	}
	*a.buf = b
	b = a.hide.Bytes(b)
	return b, fault.LooksJSON(b, a.Header.Get("Content-Type"))
}

// Events reads the body as server-sent events until each says that it has the last
// one, or the body ends; whether it was to end there is the caller's to know.
func (a *Answer) Events(ctx context.Context, each func(sse.Event) (done bool, err error)) error {
	r := a.c.readers.Get().(*bufio.Reader)
	r.Reset(a.body)
	defer func() { r.Reset(nil); a.c.readers.Put(r) }()
	done, err := sse.Read(r, a.c.maxBody, a.alive, func(e sse.Event) (bool, error) {
		e.Data = a.hide.Bytes(e.Data)
		return each(e)
	})
	if done {
		a.life.Reset(afterEnd)
		_, _ = io.Copy(io.Discard, io.LimitReader(r, 4096))
		return err
	}
	return a.read(ctx, err)
}

// Lines reads the body line by line, as of JSONL.
func (a *Answer) Lines(ctx context.Context, each func(line []byte) error) error {
	r := a.c.readers.Get().(*bufio.Reader)
	r.Reset(a.body)
	defer func() { r.Reset(nil); a.c.readers.Put(r) }()
	var line []byte
	for {
		// Whoever takes the lines may be slow: only the time of reading counts.
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

// IsStream says whether the body is one of server-sent events.
func (a *Answer) IsStream() bool {
	t := a.Header.Get("Content-Type")
	return len(t) >= 17 && strings.EqualFold(t[:17], "text/event-stream")
}

// Latency is the time since the request was sent.
func (a *Answer) Latency() time.Duration { return time.Since(a.start) }

// Close ends the exchange and gives back what it held.
func (a *Answer) Close() {
	a.life.Stop()
	if a.body != nil {
		a.body.Close()
	}
	a.cancel(nil)
	a.c.pool.give(a.lane)
	if a.buf != nil && cap(*a.buf) <= 1<<20 {
		a.c.bufs.Put(a.buf)
	}
}

// alive notes a sign of life: a whole line. Nothing keeps an answer alive beyond its longest.
func (a *Answer) alive() { a.life.Reset(min(a.c.timeout, a.c.longest()-time.Since(a.start))) }

// longest is how long an answer may take that keeps giving signs of life.
func (c *Client) longest() time.Duration { return max(c.timeout, longest) }

// read turns an error of reading into an *llm.Error; one that is already is kept.
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
