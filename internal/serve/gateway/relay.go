// Part relay sends calls to providers unchanged, byte for byte, and describes their results in the terms of
// package llm.
//
// An Upstream is an llm.Model, so that all layers of dispatch apply. Dispatch sees a size and a model; the
// call itself travels in the context as a Flight.
//
// It promises that an answer is not changed unless it must be translated; that a stream goes to the client as
// it arrives, except its end, which is held until the call is recorded; that a call is not retried once its
// client got a part of the answer; and that no key is in what it returns.
//
// It is not for keeping records (package ledger) or for choosing models.

package gateway

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"parley/internal/ask/dialect"
	"parley/internal/ask/provider"
	"parley/internal/ask/transport"
	"parley/internal/ask/wire/fault"
	"parley/internal/kit/redact"
	"parley/internal/serve/gateway/format"
	"parley/llm"
)

// relayUpstream is a provider.
type relayUpstream struct {
	p       provider.Provider
	ownsKey bool // see OwnsKey
	vertex  bool // it is Anthropic's format on Vertex AI

	c     *transport.Client
	codec transport.Codec // of the provider
	// codecs are those of endpoints whose calls are not translated. They are never changed.
	codecs map[format.API]*transport.Codec
	own    map[string]bool // headers that clients cannot replace
	caps   sync.Map        // of *provider.Capability, by model
	bufs   sync.Pool       // *[]byte, to read streams with
	hide   atomic.Pointer[hidden]
}

// hidden is the Redactor of a client's keys.
type hidden struct {
	keys []string
	*redact.Redactor
}

// hideKeys returns the Redactor of a client's keys. It remembers the last one, since most calls have the same
// keys.
func (u *relayUpstream) hideKeys(keys []string) *redact.Redactor {
	if len(keys) == 0 {
		return nil
	}
	h := u.hide.Load()
	if h == nil || !slices.Equal(h.keys, keys) {
		h = &hidden{keys, redact.New(keys...)}
		u.hide.Store(h)
	}
	return h.Redactor
}

// readSize is the size of reads while a stream is fast.
const readSize = 4 << 10

// openRelay returns the Upstream of a provider. It reads the key from the environment, and opens no connection.
func openRelay(p provider.Provider) (*relayUpstream, error) {
	codec, ok := dialect.CodecOf(p)
	if !ok {
		return nil, fmt.Errorf("relay: provider %s: %q is not a wire format", p.Name, p.Dialect)
	}
	c, err := transport.New(p, codec.Config)
	if err != nil {
		return nil, err
	}
	u := &relayUpstream{
		p: p, ownsKey: p.HasKey() || p.Signs(), vertex: p.Dialect == "anthropic" && p.APIVersion != "",
		c: c, codec: codec, codecs: codecs(), own: own(p.Headers),
	}
	u.bufs.New = func() any { b := make([]byte, readSize); return &b }
	return u, nil
}

// Provider returns the provider. Do not change it.
func (u *relayUpstream) Provider() *provider.Provider { return &u.p }

// Close closes idle connections.
func (u *relayUpstream) Close() error { return u.c.Close() }

// Alive returns nil if the server can be reached.
func (u *relayUpstream) Alive(ctx context.Context) error { return u.c.Alive(ctx) }

// Speaks reports whether it speaks the format of an endpoint, so that calls need not be translated.
func (u *relayUpstream) Speaks(api format.API) bool {
	switch u.p.Dialect {
	case "anthropic":
		return api.Anthropic()
	case "openai", "responses":
		return !api.Anthropic()
	}
	return false
}

// OwnsKey reports whether calls are sent with the provider's own key or signature, never with a client's key.
func (u *relayUpstream) OwnsKey() bool { return u.ownsKey }

// Ask sends the flight of the context to the model of req.
func (u *relayUpstream) Ask(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	f, ok := ctx.Value(flightKey{}).(*relayFlight)
	if !ok {
		return nil, &llm.Error{Kind: llm.KindBadRequest, Message: "there is no call to send"}
	}
	if f.begun {
		return nil, f.late() // too late for a fallback
	}
	f.reset(u)
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

// failed adds the model to an error and removes every key from it.
func (u *relayUpstream) failed(f *relayFlight, err error, model string, a *transport.Answer) *llm.Error {
	e := llm.AsError(u.c.Fail(err, model, a))
	f.hide.Error(e)
	f.attribute(e)
	return e
}

// try makes one attempt.
func (u *relayUpstream) try(ctx context.Context, f *relayFlight, model string) (*llm.Response, error) {
	out, err := u.outgoing(f, model)
	if err != nil {
		return nil, err
	}
	a, status, err := u.send(ctx, f, out)
	if err != nil {
		return nil, err
	}
	defer a.Close()
	out.body = nil // a stream may last long
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

func (u *relayUpstream) send(ctx context.Context, f *relayFlight, out *outgoing) (*transport.Answer, int, error) {
	header := u.header(f, out.translated())
	maps.Copy(header, out.header)
	return u.c.Raw(ctx, transport.Request{Path: out.path, Root: out.api.Exact(), Body: out.body, Header: header, Hide: f.hide})
}

// codecs returns the codecs of the endpoints' answers.
func codecs() map[format.API]*transport.Codec {
	all := map[format.API]*transport.Codec{}
	for _, api := range format.APIs() {
		codec, _ := dialect.Codec(api.Dialect())
		if api == format.Embeddings {
			codec.Decode = decodeEmbeddings
		}
		all[api] = &codec
	}
	return all
}

// outgoing is a call as it is sent.
type outgoing struct {
	api    format.API // of the provider; empty if none of the gateway's endpoints has its format
	client format.API // of the client
	codec  *transport.Codec
	path   string
	header http.Header // of the codec
	body   []byte
	usage  bool // the usage was asked for by us
	// dropped names members that the other format does not have.
	dropped []string
}

func (o *outgoing) translated() bool { return o.api != o.client }

// tell names the dropped members in the header of an answer.
func (o *outgoing) tell(h http.Header) {
	if len(o.dropped) > 0 {
		h["X-Parley-Dropped"] = []string{strings.Join(o.dropped, ",")}
	}
}

func (u *relayUpstream) capability(model string) provider.Capability {
	c, ok := u.caps.Load(model)
	if !ok {
		c = u.lookUp(model)
	}
	return *c.(*provider.Capability)
}

func (u *relayUpstream) lookUp(model string) any {
	c := u.p.Capability(model)
	u.caps.Store(model, &c)
	return &c
}

// outgoing returns the call as it is sent: unchanged except for the model's name, a request for the usage of a
// stream and the signatures of Gemini, or in the provider's format.
func (u *relayUpstream) outgoing(f *relayFlight, model string) (*outgoing, error) {
	c := f.Call
	if !u.Speaks(c.API) {
		return u.translated(f, model)
	}
	out := &outgoing{api: c.API, client: c.API, codec: u.codecs[c.API], path: c.API.Path(), body: format.CutIDs(f.Body, mark)}
	switch {
	case u.vertex && c.API != format.Messages:
		return nil, fault.BadRequest("%s does not answer %s", u.p.Name, c.API)
	case u.vertex:
		out.path, out.body = u.codec.PathOf(model, c.Stream), format.ForVertex(out.body)
		return out, nil
	case u.p.APIVersion != "" && !c.API.Exact():
		out.path = dialect.AzurePath(u.p.APIVersion, out.path, model)
	}
	if model != c.Request.Model {
		out.body = format.SetModel(out.body, model)
	}
	if c.API == format.Chat && c.Stream && !c.Usage && !u.capability(model).NoStreamOptions {
		out.body, out.usage = format.AskUsage(out.body), true
	}
	return out, nil
}

// finish adds what the header says. It leaves out the limits of a client's own account, since limits are
// shared by all clients.
func (u *relayUpstream) finish(f *relayFlight, r *llm.Response, a *transport.Answer, model string) {
	r.Provider = u.p.Name
	r.RequestID = fault.RequestID(a.Header)
	if len(f.Keys) == 0 {
		r.Rate = fault.Rate(a.Header)
	}
	r.Metadata.FirstByte, r.Metadata.Latency = a.FirstByte, a.Latency()
	if r.Model == "" {
		r.Model = model
	}
	a.Hide().Response(r)
}

// tell adds what the header of the answer says to an error.
func tell(err error, a *transport.Answer) error {
	e := *llm.AsError(err)
	if e.RequestID == "" {
		e.RequestID = fault.RequestID(a.Header)
	}
	if e.Rate == nil {
		e.Rate = fault.Rate(a.Header)
	}
	e.Metadata.FirstByte, e.Metadata.Latency = a.FirstByte, a.Latency()
	return &e
}

// Fetch sends a flight that asks no model: it has no price and no limits. The answer is in the flight.
func (u *relayUpstream) Fetch(ctx context.Context, f *relayFlight, model string) *llm.Error {
	f.reset(u)
	if (!u.Speaks(f.Call.API) && f.Call.API != format.Models) || u.codec.PathOf != nil {
		e := &llm.Error{Kind: llm.KindBadRequest, Status: http.StatusNotFound, Message: string(f.Call.API) + ": " + u.p.Name + " does not have this in a format of the gateway's"}
		return u.failed(f, e, model, nil)
	}
	call := transport.Request{Path: f.Call.API.Path() + f.Suffix, Header: u.header(f, false), Hide: f.hide}
	if f.Call.API == format.Models {
		call.Method = http.MethodGet
	} else if call.Body = format.CutIDs(f.Body, mark); model != f.Call.Request.Model {
		call.Body = format.SetModel(call.Body, model)
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

var _ llm.Model = (*relayUpstream)(nil)
