package transport

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"sync"

	"parley/internal/ask/credential"
	"parley/internal/ask/dispatch/replica"
	"parley/internal/ask/provider"
	"parley/internal/ask/wire/fault"
	"parley/internal/kit/sse"
	"parley/llm"
)

// Codec writes the requests and reads the answers of a dialect.
type Codec struct {
	Path string // of the endpoint, below the base URL
	// Continue is the path of a request with a Begun. Default: there are none.
	Continue string
	Config   Config
	// PathOf returns the endpoint of a model, if it is not Path.
	PathOf func(model string, stream bool) string
	// Header returns what the header of req has beside the usual. Default: nothing.
	Header func(req *llm.Request) http.Header
	// Append appends the body of req, and returns the parameters that it left out because the
	// model refuses them.
	Append func(dst []byte, req *llm.Request, c provider.Capability, stream bool) (body []byte, dropped []string, err error)
	// Decode reads a whole answer. It keeps nothing of body.
	Decode func(body []byte) (*llm.Response, error)
	// Assemble returns the Assembler of a stream.
	Assemble func() Assembler
	// MaxTokens returns the maximum output of a request without a MaxTokens. It may be nil.
	MaxTokens func(req *llm.Request, c provider.Capability) int
}

// Assembler assembles an answer from the events of a stream.
type Assembler interface {
	// Event adds the next event, and reports whether it was the last.
	Event(sse.Event) (done bool, err error)
	// Received returns the number of bytes of content so far.
	Received() int
	// Response returns the answer, or an error if the stream is incomplete.
	Response() (*llm.Response, error)
}

// Model is a provider with its dialect.
type Model struct {
	p     provider.Provider
	c     *Client
	codec Codec
	caps  sync.Map // of *provider.Capability, by model
}

// Open returns the Model of a provider. Without keys, it reads the provider's.
func Open(p provider.Provider, codec Codec, keys *credential.Source) (*Model, error) {
	c, err := New(p, codec.Config, keys)
	if err != nil {
		return nil, err
	}
	return &Model{p: p, c: c, codec: codec}, nil
}

// Close closes the connections that no call is using.
func (m *Model) Close() error { return m.c.Close() }

// Ask implements llm.Model.
func (m *Model) Ask(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	_, model := llm.SplitModel(req.Model)
	o, err := m.compose(ctx, req, model)
	if err != nil {
		return nil, m.c.Fail(err, model, nil)
	}
	a, err := m.c.do(ctx, &o.call)
	if err != nil {
		return nil, m.c.Fail(err, model, nil)
	}
	defer a.Close()
	if a.sent.Load() { // nobody reads the body any more
		o.free()
	}
	resp, err := m.receive(ctx, a)
	if err == nil {
		err = wasCut(o.req, resp)
	}
	if err != nil {
		return nil, m.c.Fail(err, model, a)
	}
	m.finish(resp, a, model, o.dropped)
	return resp, nil
}

// outgoing is a request on its way to the server. It keeps its body only until that is sent: while very many calls wait, their
// bodies would take much memory. In the rare case that the request is sent again with another key, the body is written again.
type outgoing struct {
	m       *Model
	call    Request
	req     *llm.Request // what is sent of it
	limits  *provider.Capability
	stream  bool
	dropped []string // what the model does not take
	buf     *[]byte  // of the body
}

// fill writes the body, if it is not there.
func (o *outgoing) fill() (err error) {
	if o.call.Body != nil {
		return nil
	}
	o.buf = o.m.c.bodies.Get().(*[]byte)
	o.call.Body, o.dropped, err = o.m.codec.Append((*o.buf)[:0], o.req, *o.limits, o.stream)
	if err != nil {
		return fault.BadRequest("%v", err)
	}
	return nil
}

// free gives the memory of the body back.
func (o *outgoing) free() {
	if o.call.Body != nil && cap(o.call.Body) <= maxKept {
		*o.buf = o.call.Body
		o.m.c.bodies.Put(o.buf)
	}
	o.call.Body, o.buf = nil, nil
}

// compose returns what is sent for a request.
func (m *Model) compose(ctx context.Context, req *llm.Request, model string) (*outgoing, error) {
	switch {
	case model == "":
		return nil, fault.BadRequest("the request names no model")
	case len(req.Messages) == 0:
		return nil, fault.BadRequest("the request has no messages")
	}
	o := &outgoing{m: m, call: Request{Path: m.codec.Path}, limits: m.capability(model)}
	o.call.from = o
	o.stream = m.streams(ctx, req, *o.limits)
	if m.codec.PathOf != nil {
		o.call.Path = m.codec.PathOf(model, o.stream)
	}
	if req.Begun != nil && m.codec.Continue != "" {
		o.call.Path, o.stream = m.codec.Continue, false
	}
	if m.codec.Header != nil {
		o.call.Header = m.codec.Header(req)
	}
	for name, value := range req.Headers {
		if !isToken(name) || !isText(value) {
			return nil, fault.BadRequest("the header %q has a name or a value that cannot be sent", name)
		}
		if o.call.Header == nil {
			o.call.Header = http.Header{}
		}
		o.call.Header.Set(name, value)
	}
	var err error
	if o.req, err = m.session(&o.call, req); err != nil {
		return nil, err
	}
	return o, o.fill()
}

// receive reads the answer, streamed or not. Some servers never stream, and some always do.
func (m *Model) receive(ctx context.Context, a *Answer) (*llm.Response, error) {
	if !a.IsStream() {
		b, err := a.Bytes(ctx)
		if err != nil {
			return nil, err
		}
		llm.Began(ctx)
		return m.codec.Decode(b)
	}
	as, begun := m.codec.Assemble(), false
	err := a.Events(ctx, func(e sse.Event) (bool, error) {
		if !begun {
			begun = true
			a.FirstByte = a.Latency()
			llm.Began(ctx)
		}
		done, err := as.Event(e)
		if err != nil {
			e := llm.AsError(err)
			e.Uncertain = true
			return done, e
		}
		return done, nil
	})
	var resp *llm.Response
	if err == nil {
		resp, err = as.Response()
	}
	return resp, WithReceived(err, as.Received())
}

// WithReceived adds the number of bytes received to err, unless it is nil.
func WithReceived(err error, n int) error {
	if err == nil || n == 0 {
		return err
	}
	e := *llm.AsError(err)
	e.Received = n
	return &e
}

func (m *Model) finish(r *llm.Response, a *Answer, model string, dropped []string) {
	r.Provider, r.Dropped = m.p.Name, dropped
	r.RequestID, r.Rate = fault.RequestID(a.Header), fault.Rate(a.Header)
	r.Metadata.FirstByte, r.Metadata.Latency = a.FirstByte, a.Latency()
	if r.Model == "" {
		r.Model = model
	}
	a.hide.Response(r) // the key may be split over several events
}

// wasCut detects a prompt that the server silently truncated, as local servers do: it counted far
// fewer tokens than the prompt has words. In every known tokenizer a word is at least one token; the
// limit is half of that.
func wasCut(req *llm.Request, r *llm.Response) error {
	size := 0
	for i := range req.Messages {
		for _, p := range req.Messages[i].Parts {
			size += len(p.Text)
		}
	}
	if n := r.Usage.Input; n <= 0 || size < 8*n { // the usual case: count nothing
		return nil
	}
	words := 0
	for i := range req.Messages {
		for _, p := range req.Messages[i].Parts {
			words += countWords(p.Text)
		}
	}
	if words < 1000 || words < 2*r.Usage.Input {
		return nil
	}
	return &llm.Error{Kind: llm.KindTooLong, Usage: r.Usage, Message: fmt.Sprintf(
		"the server truncated the prompt without an error: it counted %d tokens for %d words; raise its context size", r.Usage.Input, words)}
}

func countWords(s string) int {
	n, space := 0, true
	for i := range len(s) {
		now := s[i] <= ' '
		if space && !now {
			n++
		}
		space = now
	}
	return n
}

// streams reports whether to stream the answer: if the caller waits for its beginning, or if it may
// take so long that an idle connection would be closed. Otherwise a whole answer costs less CPU.
func (m *Model) streams(ctx context.Context, req *llm.Request, c provider.Capability) bool {
	switch {
	case req.TokenIDs && c.SGLangTokenIDs:
		return false // the server does not stream them
	case m.p.Stream == "always":
		return true
	case m.p.Stream == "never":
		return false
	}
	n := req.MaxTokens
	if n == 0 && m.codec.MaxTokens != nil {
		n = m.codec.MaxTokens(req, c)
	}
	switch req.Effort {
	case llm.EffortHigh, llm.EffortXHigh, llm.EffortMax:
		return true
	}
	return n > 8192 || llm.WantsBegan(ctx)
}

func (m *Model) capability(model string) *provider.Capability {
	if c, ok := m.caps.Load(model); ok {
		return c.(*provider.Capability)
	}
	c := m.p.Capability(model)
	m.caps.Store(model, &c)
	return &c
}

// session adds the session of req to call, in the way that the provider wants. It returns req,
// without the session if the provider must not see it.
func (m *Model) session(call *Request, req *llm.Request) (*llm.Request, error) {
	if req.Session == "" {
		return req, nil
	}
	switch m.p.Session {
	case provider.SessionHeader:
		if call.Header == nil {
			call.Header = http.Header{}
		}
		call.Header.Set("X-Session-Id", fault.Clean(req.Session, maxSession))
	case provider.SessionPath:
		at, err := sessionPath(req.Session)
		if err != nil {
			return nil, err
		}
		call.Path = at + call.Path
	default:
		c := *req
		c.Session = ""
		return &c, nil
	}
	return req, nil
}

// maxSession is the maximum length of a session's name.
const maxSession = 200

// sessionPath returns the path of a session below the base URL. It is always one path segment.
func sessionPath(session string) (string, error) {
	if session == "" || session == "." || session == ".." || len(session) > maxSession {
		return "", fault.BadRequest("%q cannot be the name of a session in a URL", fault.Clean(session, 50))
	}
	return "/" + url.PathEscape(session), nil
}

// Alive returns an error if the server cannot be reached: see Client.
func (m *Model) Alive(ctx context.Context) error { return m.c.Alive(ctx) }

// Alive returns an error if the server cannot be reached, or answers with a server error.
func (c *Client) Alive(ctx context.Context) error {
	a, err := c.Do(ctx, Request{Method: http.MethodGet, Path: "/models"})
	if err == nil {
		a.Drain()
		a.Close()
		return nil
	}
	if e := llm.AsError(err); e.Status == 0 || e.Status >= http.StatusInternalServerError {
		return c.Fail(err, "", nil)
	}
	return nil
}

// Load reads the server's load from its Prometheus metrics.
func (m *Model) Load(ctx context.Context) (replica.Load, error) {
	var r replica.Reader
	if err := m.small(ctx, Request{Method: http.MethodGet, Path: m.p.Metrics, Root: true}, r.Line); err != nil {
		return replica.Load{}, err
	}
	return r.Load()
}

// End closes a session.
func (m *Model) End(ctx context.Context, session string, whole bool) error {
	at, err := sessionPath(session)
	if err != nil {
		return err
	}
	closing := map[string]string{"reason": "the episode ended", "completion_mode": "complete"}
	if !whole {
		closing = map[string]string{"reason": "the episode was given up", "completion_mode": "abort"}
	}
	body, err := json.Marshal(closing)
	if err != nil {
		return err
	}
	return m.small(ctx, Request{Path: at + "/close", Body: body}, nil)
}

// small makes a small exchange, and calls each with the lines of its answer.
func (m *Model) small(ctx context.Context, call Request, each func(line []byte)) error {
	a, err := m.c.Do(ctx, call)
	if err != nil {
		return m.c.Fail(err, "", nil)
	}
	defer a.Close()
	if each == nil {
		a.Drain()
		return nil
	}
	err = a.Lines(ctx, func(line []byte) error {
		each(line)
		return nil
	})
	if err != nil {
		return m.c.Fail(err, "", a)
	}
	return nil
}

var _ replica.Server = (*Model)(nil)
