// Package relay hands calls on to providers as they are, byte for byte, and tells what
// became of them in the words of package llm.
//
// An Upstream is an llm.Model, so that dispatch can stand before it with all its layers:
// what it is asked is a size and a model to dispatch, and the call itself travels in the
// context as a Flight.
//
// It promises that nothing of an answer changes on its way unless it must be translated;
// that a stream goes to the client as it comes, but for its end, which is held until its
// call is recorded; that once a client has been sent anything the call is never tried
// again; and that no key is in what it returns.
//
// It is not for keeping records (package ledger) or for choosing models.
package relay

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"parley/internal/dialect"
	"parley/internal/dialect/transport"
	"parley/internal/provider"
	"parley/internal/serve/gateway/format"
	"parley/llm"
)

// Upstream is a provider.
type Upstream struct {
	p    provider.Provider
	c    *transport.Client
	own  map[string]bool // headers that no client can replace
	caps sync.Map        // of provider.Capability, by model
	bufs sync.Pool       // *[]byte, to read streams with
}

// readSize is how much of a stream is read at once while it comes fast.
const readSize = 4 << 10

// Open makes the Upstream of a provider. It reads the key from the environment, and opens
// no connection.
func Open(p provider.Provider) (*Upstream, error) {
	codec, ok := dialect.Codec(p.Dialect)
	if !ok {
		return nil, fmt.Errorf("relay: provider %s: %q is not a wire format", p.Name, p.Dialect)
	}
	c, err := transport.New(p, codec.Config)
	if err != nil {
		return nil, err
	}
	u := &Upstream{p: p, c: c, own: own(p.Headers)}
	u.bufs.New = func() any { b := make([]byte, readSize); return &b }
	return u, nil
}

// Provider is the account it is opened for.
func (u *Upstream) Provider() provider.Provider { return u.p }

// Close closes the connections that no call is using.
func (u *Upstream) Close() error { return u.c.Close() }

// Alive says whether the server can be reached.
func (u *Upstream) Alive(ctx context.Context) error { return u.c.Alive(ctx) }

// Anthropic says whether it speaks Anthropic's formats, and not OpenAI's.
func (u *Upstream) Anthropic() bool { return u.p.Dialect == "anthropic" }

// Ask carries out the flight of the context, asking the model of req.
func (u *Upstream) Ask(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	f, ok := ctx.Value(flightKey{}).(*Flight)
	if !ok {
		return nil, &llm.Error{Kind: llm.KindBadRequest, Message: "there is no call to hand on"}
	}
	if f.begun {
		return nil, f.late() // a fallback after the first byte: it is too late for one
	}
	f.reset()
	if f.Admitted != nil {
		f.Admitted(req.Order)
	}
	f.Asked = req.Model
	_, model := llm.SplitModel(req.Model)
	resp, err := u.try(ctx, f, model)
	if err != nil {
		e := u.failed(f, err, model, nil)
		e.Final = e.Final || f.begun
		f.err = e
		return nil, e
	}
	return resp, nil
}

// failed names the model of an error, and takes every key out of it.
func (u *Upstream) failed(f *Flight, err error, model string, a *transport.Answer) *llm.Error {
	e := llm.AsError(u.c.Fail(err, model, a))
	f.hide.Error(e)
	f.attribute(e)
	return e
}

// try is one attempt.
func (u *Upstream) try(ctx context.Context, f *Flight, model string) (*llm.Response, error) {
	out, err := u.outgoing(f, model)
	if err != nil {
		return nil, err
	}
	a, status, err := u.send(ctx, f, out)
	if err != nil {
		return nil, err
	}
	defer a.Close()
	var resp *llm.Response
	switch {
	case status < 200 || status > 299:
		return nil, u.refused(ctx, f, a, status, out.translated())
	case a.IsStream() && f.Call.Stream:
		resp, err = u.stream(ctx, f, a, out)
	default:
		resp, err = u.whole(ctx, f, a, status, out)
	}
	if err != nil {
		return nil, tell(err, a)
	}
	u.finish(f, resp, a, model)
	return resp, nil
}

func (u *Upstream) send(ctx context.Context, f *Flight, out *outgoing) (*transport.Answer, int, error) {
	return u.c.Raw(ctx, transport.Call{Path: out.api.Path(), Body: out.body, Header: u.header(f, out.translated()), Hide: f.hide})
}

// codecOf is how an endpoint's answers are read.
func codecOf(api format.API) transport.Codec {
	codec, _ := dialect.Codec(api.Dialect())
	if api == format.Embeddings {
		codec.Decode = decodeEmbeddings
	}
	return codec
}

// outgoing is a call as it goes out.
type outgoing struct {
	api    format.API // as the provider speaks it
	client format.API // as the client does
	body   []byte
	usage  bool // what was used was asked for on our own account
	// dropped names what could not be said in the other format.
	dropped []string
}

func (o *outgoing) translated() bool { return o.api != o.client }

// tell says in the header of an answer what could not be said to the provider.
func (o *outgoing) tell(h http.Header) {
	if len(o.dropped) > 0 {
		h["X-Parley-Dropped"] = []string{strings.Join(o.dropped, ",")}
	}
}

func (u *Upstream) capability(model string) provider.Capability {
	if c, ok := u.caps.Load(model); ok {
		return c.(provider.Capability)
	}
	c := u.p.Capability(model)
	u.caps.Store(model, c)
	return c
}

// outgoing writes the call for this provider: as it came, but for the model's name and
// for the wish to be told what a stream used, or in the provider's own format.
func (u *Upstream) outgoing(f *Flight, model string) (*outgoing, error) {
	c := f.Call
	out := &outgoing{api: c.API, client: c.API, body: f.Body}
	if c.API.Anthropic() != u.Anthropic() {
		return u.translated(f, model)
	}
	if model != c.Request.Model {
		out.body = format.SetModel(out.body, model)
	}
	if c.API == format.Chat && c.Stream && !c.Usage && !u.capability(model).NoStreamOptions {
		out.body, out.usage = format.AskUsage(out.body), true
	}
	return out, nil
}

// finish adds what the header says. What it says of the limits of a client's own account is
// left out, since the limits that calls wait for are shared by all clients.
func (u *Upstream) finish(f *Flight, r *llm.Response, a *transport.Answer, model string) {
	r.Provider = u.p.Name
	r.RequestID = requestID(a.Header)
	if len(f.Keys) == 0 {
		r.Rate = rate(a.Header)
	}
	r.Metadata.FirstByte, r.Metadata.Latency = a.FirstByte, a.Latency()
	if r.Model == "" {
		r.Model = model
	}
	a.Hide().Response(r)
}

// tell adds to an error what the header of the answer says.
func tell(err error, a *transport.Answer) error {
	e := *llm.AsError(err)
	if e.RequestID == "" {
		e.RequestID = requestID(a.Header)
	}
	if e.Rate == nil {
		e.Rate = rate(a.Header)
	}
	e.Metadata.FirstByte, e.Metadata.Latency = a.FirstByte, a.Latency()
	return &e
}

// Fetch carries out a flight that asks no model anything: it has no price and no limit.
// The answer, whatever it is, is in the flight.
func (u *Upstream) Fetch(ctx context.Context, f *Flight, model string) *llm.Error {
	f.reset()
	call := transport.Call{Path: f.Call.API.Path() + f.Suffix, Header: u.header(f, false), Hide: f.hide}
	if f.Call.API == format.Models {
		call.Method = http.MethodGet
	} else if call.Body = f.Body; model != f.Call.Request.Model {
		call.Body = format.SetModel(f.Body, model)
	}
	a, status, err := u.c.Raw(ctx, call)
	if err != nil {
		return u.failed(f, err, model, nil)
	}
	defer a.Close()
	if status < 200 || status > 299 {
		return u.failed(f, u.refused(ctx, f, a, status, false), model, a)
	}
	b, err := readBody(ctx, a)
	if err != nil {
		return u.failed(f, err, model, a)
	}
	f.answer(status, a.Header, b)
	return nil
}

var _ llm.Model = (*Upstream)(nil)
