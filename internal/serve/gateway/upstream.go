package gateway

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"parley/internal/ask/credential"
	"parley/internal/ask/dialect"
	"parley/internal/ask/dispatch/tokens"
	"parley/internal/ask/provider"
	"parley/internal/ask/redact"
	"parley/internal/ask/transport"
	"parley/internal/ask/wire/fault"
	"parley/internal/ask/wire/openai"
	"parley/internal/ask/wire/request"
	"parley/internal/ask/wire/responses"
	"parley/internal/kit/auth"
	"parley/internal/serve/gateway/format"
	"parley/llm"
)

// relay sends calls to a provider unchanged, byte for byte, and describes their results in the terms of package llm.
//
// It is an llm.Model, so that all layers of dispatch apply. Dispatch sees a size and a model; the call itself travels
// in the context as a flight.
//
// An answer is not changed unless it must be translated. A stream goes to the client as it arrives, except its end,
// which is held until the call is recorded. A call is not retried once its client got a part of the answer. No key is
// in what a relay returns.
type relay struct {
	provider provider.Provider
	ownsKey  bool // calls are sent with the provider's own key or signature, never with a client's key
	vertex   bool // it is Anthropic's format on Vertex AI

	model     llm.Model         // asked for calls that cannot be passed on as they are; nil: there are none
	transport *transport.Client // nil: every call is one for model
	codec     transport.Codec   // of the provider
	// codecs are those of endpoints whose calls are not translated. They are never changed.
	codecs map[format.API]*transport.Codec
	own    map[string]bool // headers that clients cannot replace
	bufs   sync.Pool       // *[]byte, to read streams with
	// noResponses means that the server has said that it does not have that endpoint.
	noResponses atomic.Bool
}

// readSize is the size of reads while a stream is fast.
const readSize = 4 << 10

// openRelay returns the relay to a provider. It reads the key from the environment, and opens no connection.
func openRelay(p provider.Provider, keys *credential.Source) (*relay, error) {
	codec, ok := dialect.CodecOf(p)
	if !ok && p.InProcess() {
		return &relay{provider: p, ownsKey: true, own: map[string]bool{}}, nil
	}
	if !ok {
		return nil, fmt.Errorf("provider %s: %q is not a wire format", p.Name, p.Dialect)
	}
	c, err := transport.New(p, codec.Config, keys)
	if err != nil {
		return nil, err
	}
	u := &relay{
		provider: p, ownsKey: p.HasKey() || p.Signs(), vertex: p.Dialect == "anthropic" && p.APIVersion != "",
		transport: c, codec: codec, codecs: endpointCodecs(), own: ownHeaders(p.Headers),
	}
	u.bufs.New = func() any { b := make([]byte, readSize); return &b }
	return u, nil
}

// Close closes idle connections.
func (u *relay) Close() error {
	if u.transport == nil {
		return nil
	}
	return u.transport.Close()
}

// Alive returns nil if the server can be reached.
func (u *relay) Alive(ctx context.Context) error {
	if u.transport == nil {
		return nil
	}
	return u.transport.Alive(ctx)
}

// Speaks reports whether it speaks the format of an endpoint, so that calls need not be translated.
func (u *relay) Speaks(api format.API) bool {
	switch u.provider.Dialect {
	case "anthropic":
		return api.Anthropic()
	case "gemini":
		return api.Google()
	case "openai", "responses":
		return !api.Anthropic() && !api.Google() && !(api == format.Responses && u.noResponses.Load())
	}
	return false
}

// Ask sends the flight of the context to the model of req.
func (u *relay) Ask(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	f, ok := ctx.Value(flightKey{}).(*flight)
	if !ok && u.model != nil {
		return u.model.Ask(ctx, req)
	}
	if !ok {
		return nil, &llm.Error{Kind: llm.KindBadRequest, Message: "there is no call to send"}
	}
	if f.begun {
		return nil, f.begunError() // too late for a fallback
	}
	f.reset()
	if f.Admitted != nil {
		f.Admitted(req.Order)
	}
	f.Asked = req.Model
	_, model := llm.SplitModel(req.Model)
	var resp *llm.Response
	var err error
	if u.transport == nil || f.Tokens {
		resp, err = u.asked(ctx, f, req)
	} else {
		spoke := u.Speaks(f.Call.API)
		resp, err = u.try(ctx, f, model)
		if err != nil && spoke && !u.Speaks(f.Call.API) { // it has just said that it does not know the endpoint
			f.reset()
			resp, err = u.try(ctx, f, model)
		}
	}
	if err != nil {
		e := u.failed(f, err, model, nil)
		e.Final = e.Final || f.begun
		f.err = e
		return nil, e
	}
	return resp, nil
}

// reportsTokens reports whether a model can report the ids of tokens.
func (u *relay) reportsTokens(name string) bool {
	_, model := llm.SplitModel(name)
	return u.provider.InProcess() || u.provider.Capability(model).TokenIDs
}

// failed adds the model to an error and removes every key from it.
func (u *relay) failed(f *flight, err error, model string, a *transport.Answer) *llm.Error {
	e := llm.AsError(err)
	if u.transport != nil {
		e = llm.AsError(u.transport.Fail(err, model, a))
	}
	f.hide.Error(e)
	f.attribute(e)
	return e
}

// try makes one attempt.
func (u *relay) try(ctx context.Context, f *flight, model string) (*llm.Response, error) {
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
		return nil, addHeaderInfo(err, a)
	}
	u.finish(f, resp, a, model)
	return resp, nil
}

func (u *relay) send(ctx context.Context, f *flight, out *outgoing) (*transport.Answer, int, error) {
	header := u.header(f, out.translated())
	maps.Copy(header, out.header)
	return u.transport.Raw(ctx, transport.Request{Path: out.path, Root: out.api.Exact(), Body: out.body, Header: header, Hide: f.hide})
}

// endpointCodecs returns the codecs of the endpoints' answers.
func endpointCodecs() map[format.API]*transport.Codec {
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
	meta    openai.Meta // of a translated answer, without its id
}

func (o *outgoing) translated() bool { return o.api != o.client }

// nameDropped names the dropped members in the header of an answer.
func (o *outgoing) nameDropped(h http.Header) {
	if len(o.dropped) > 0 {
		h["X-Parley-Dropped"] = []string{strings.Join(o.dropped, ",")}
	}
}

// asked gives the call to the model as a request, and writes its answer in the format of the client.
func (u *relay) asked(ctx context.Context, f *flight, req *llm.Request) (*llm.Response, error) {
	c := f.Call
	if err := u.translatable(c); err != nil {
		return nil, err
	}
	ask, meta := u.neutral(f, false)
	ask.Model, ask.Session, ask.Order, ask.MaxCost, ask.Begun, ask.Fallbacks = req.Model, req.Session, req.Order, req.MaxCost, req.Begun, nil
	var dropped []string
	if c.API != format.Chat || !u.Speaks(c.API) {
		dropped, ask.Extra = droppedMembers(c), nil
	}
	if f.Tokens {
		ask.TokenIDs, ask.Logprobs = true, true
	}
	resp, err := u.model.Ask(ctx, &ask)
	if err != nil {
		return nil, err
	}
	resp.Dropped = append(dropped, resp.Dropped...)
	out := &outgoing{client: c.API, dropped: resp.Dropped, meta: meta}
	id := cmp.Or(resp.ID, "parley-"+hex.EncodeToString(c.Digest[:6]))
	f.write(out, resp, id, http.Header{})
	return resp, nil
}

// outgoing returns the call as it is sent: unchanged except for the model's name, a request for the usage of a
// stream, a limit on output tokens and the signatures of Gemini, or in the provider's format.
func (u *relay) outgoing(f *flight, model string) (*outgoing, error) {
	c := f.Call
	if !u.Speaks(c.API) {
		return u.translated(f, model)
	}
	sent := format.CutIDs(f.Body, signatureMark)
	if c.API == format.Responses {
		sent = responses.DropSealed(sent)
	}
	out := &outgoing{api: c.API, client: c.API, codec: u.codecs[c.API], path: c.API.PathOf(model, c.Stream), body: c.SetLimit(sent, u.limitName(model))}
	switch {
	case u.vertex && c.API != format.Messages:
		return nil, fault.BadRequest("%s does not answer %s", u.provider.Name, c.API)
	case u.vertex:
		out.path, out.body = u.codec.PathOf(model, c.Stream), format.ForVertex(out.body)
		return out, nil
	case u.provider.APIVersion != "" && !c.API.Exact():
		out.path = dialect.AzurePath(u.provider.APIVersion, out.path, model)
	}
	if model != c.Request.Model && !c.API.Google() {
		out.body = format.SetModel(out.body, model)
	}
	if c.API == format.Chat && c.Stream && !c.Usage && !u.provider.Capability(model).NoStreamOptions {
		out.body, out.usage = format.AskUsage(out.body), true
	}
	return out, nil
}

// limitName returns the member of a chat completion that limits the tokens of an answer at the provider.
func (u *relay) limitName(model string) string {
	if u.provider.Capability(model).UseMaxTokens {
		return "max_tokens"
	}
	return "max_completion_tokens"
}

// finish adds what the header says. It leaves out the limits of a client's own account, since limits are
// shared by all clients.
func (u *relay) finish(f *flight, r *llm.Response, a *transport.Answer, model string) {
	r.Provider = u.provider.Name
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

// addHeaderInfo adds what the header of the answer says to an error.
func addHeaderInfo(err error, a *transport.Answer) error {
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
func (u *relay) Fetch(ctx context.Context, f *flight, model string) *llm.Error {
	f.reset()
	api := f.Call.API
	crossed := !u.Speaks(api)
	if lists := api.Lists() && u.provider.Dialect != "bedrock" && !u.vertex; !lists && (crossed || u.codec.PathOf != nil && !api.Google()) {
		e := &llm.Error{Kind: llm.KindBadRequest, Status: http.StatusNotFound, Message: string(f.Call.API) + ": " + u.provider.Name + " does not have this in a format of the gateway's"}
		return u.failed(f, e, model, nil)
	}
	call := transport.Request{Path: f.Call.API.PathOf(model, false) + f.Suffix, Header: u.header(f, crossed), Hide: f.hide}
	if api.Lists() {
		call.Method = http.MethodGet
	} else if call.Body = format.CutIDs(f.Body, signatureMark); model != f.Call.Request.Model && !f.Call.API.Google() {
		call.Body = format.SetModel(call.Body, model)
	}
	return u.pass(ctx, f, call, model, func(a *transport.Answer) ([]byte, error) {
		b, err := readBody(ctx, a)
		if err == nil && crossed {
			var ok bool
			if b, ok = api.AppendModels(nil, b); !ok {
				return nil, fault.Malformed("the answer is not a list of models", nil)
			}
			a.Header.Set("Content-Type", "application/json")
		}
		return b, err
	})
}

// pass sends a request as it is, and reads its answer into the flight.
func (u *relay) pass(ctx context.Context, f *flight, call transport.Request, model string, read func(*transport.Answer) ([]byte, error)) *llm.Error {
	a, status, err := u.transport.Raw(ctx, call)
	if err != nil {
		return u.failed(f, err, model, nil)
	}
	defer a.Close()
	if status < 200 || status > 299 {
		return u.failed(f, u.refused(ctx, f, a, status, !u.Speaks(f.Call.API)), model, a)
	}
	b, err := read(a)
	if err != nil {
		return u.failed(f, err, model, a)
	}
	f.answer(status, a.Header, b)
	return nil
}

// guess answers a call that counts tokens with an estimate, for a server that does not count.
func (f *flight) guess() {
	q := &f.Call.Request
	n, _ := tokens.NewEstimator().Guess(q, tokens.SizeOf(q))
	f.Status, f.Held = http.StatusOK, f.Call.API.AppendCount(nil, int(min(math.Ceil(n), request.MaxCount)))
	f.Answer = http.Header{"Content-Type": {"application/json"}, "X-Parley-Estimated": {"true"}}
}

var _ llm.Model = (*relay)(nil)

// flight is a client's call on its way to a provider and back. It belongs to one call.
type flight struct {
	Call *format.Call
	Body []byte // unchanged
	// Suffix follows the endpoint's path, escaped.
	Suffix string
	// Header is the client's, of which most is sent along.
	Header http.Header
	// OwnKey means that the provider gets the client's own key, if it sent one, instead of ours.
	OwnKey bool
	// Keys are the client's own keys, if OwnKey is set.
	Keys []string
	// Tokens asks the server for the ids and the log probabilities of the tokens. The client does not see them.
	Tokens bool
	// Session is sent to a provider that wants it, so that it can keep a session on one replica.
	Session string
	// Created is the time of a translated answer, in seconds since 1970.
	Created int64
	// Out receives a stream.
	Out *client
	// Admitted, if not nil, is called with the order of the call when it leaves the queue.
	Admitted func(order int64)

	// Asked is the last model that was asked, as provider/model.
	Asked string
	// The answer. Status is 0 while there is none.
	Status int
	Type   string      // content type, once the client got a part of the answer
	Answer http.Header // nil once it was sent
	Sent   []byte      // what the client got
	Held   []byte      // what the client has still to get
	// ProviderError means that Held ends with the provider's own error.
	ProviderError bool
	// aborted means that the server cut the answer off, and that the client gets it as it is.
	aborted bool
	begun   bool             // the client got a part of the answer
	hide    *redact.Redactor // of Keys
	err     error            // of the last attempt
}

type flightKey struct{}

// withFlight returns a context in which a relay sends f.
func withFlight(ctx context.Context, f *flight) context.Context {
	return context.WithValue(ctx, flightKey{}, f)
}

// begunError returns why a flight that has begun cannot be sent again.
func (f *flight) begunError() error {
	if f.err != nil {
		return f.err
	}
	return &llm.Error{Kind: llm.KindServer, Message: "a part of the answer was sent: the call cannot be retried", Final: true}
}

// attribute marks an error that concerns only the client. With its own key, errors about the key, the credit
// and the rates are about its account. A provider that got no key can only count calls by address, which all
// clients share: that rate limit is shared too.
func (f *flight) attribute(e *llm.Error) {
	switch e.Kind {
	case llm.KindAuth, llm.KindQuota:
		e.Caller = f.OwnKey
	case llm.KindRateLimited:
		e.Caller = len(f.Keys) > 0
	}
	if len(f.Keys) > 0 {
		e.Rate = nil
	}
}

func (f *flight) reset() {
	f.hide = redact.New(f.Keys...)
	f.Status, f.Type, f.Answer, f.Sent, f.Held, f.ProviderError, f.aborted, f.err = 0, "", nil, nil, nil, false, false, nil
}

// recorded returns an answer as it is recorded.
func (f *flight) recorded(resp *llm.Response) *llm.Response {
	if f.aborted {
		resp.Finish = llm.FinishAborted
	}
	return resp
}

// answer sets a whole answer.
func (f *flight) answer(status int, h http.Header, b []byte) {
	f.Status, f.Answer, f.Held = status, answerHeaders(h), b
}

// ownHeaders returns the headers of the provider's account, which a client cannot replace.
func ownHeaders(configured map[string]string) map[string]bool {
	out := map[string]bool{}
	for name := range configured {
		out[http.CanonicalHeaderKey(name)] = true
	}
	return out
}

// forwards calls each with every header of the client that is sent along: all except those of the connection,
// those that Connection names, and the account's own, which are those that say who pays if the key is the account's.
// Keys are sent along only in their vendor's own header: see header for the others.
func (u *relay) forwards(f *flight, each func(name string, values []string)) {
	h := f.Header
	var listed []string
	for _, v := range h["Connection"] {
		for name := range strings.SplitSeq(v, ",") {
			listed = append(listed, http.CanonicalHeaderKey(strings.TrimSpace(name)))
		}
	}
	for name, values := range h {
		if auth.IsKeyHeader(name) && len(f.Keys) == 0 || u.ownsKey && isBillingHeader(name) {
			continue
		}
		if !isHopHeader(name) && !strings.HasPrefix(name, "X-Parley-") && !u.own[name] && !slices.Contains(listed, name) {
			each(name, values)
		}
	}
}

// isBillingHeader reports whether a header says who pays for a call, of those that its key may use, or at which rate.
func isBillingHeader(name string) bool {
	switch name {
	case "Openai-Organization", "Openai-Project", "X-Hf-Bill-To", "X-Dashscope-Workspace", "X-Ms-Spillover-Deployment":
		return true
	}
	return strings.HasPrefix(name, "X-Goog-") || strings.HasPrefix(name, "X-Vertex-Ai-") || strings.HasPrefix(name, "X-Amzn-Bedrock-")
}

// header returns the headers to send. Another vendor gets at most the session.
func (u *relay) header(f *flight, translated bool) http.Header {
	out := make(http.Header, len(f.Header)+1)
	if !translated {
		u.forwards(f, func(name string, values []string) { out[name] = values })
		if u.vertex {
			delete(out, "Anthropic-Version") // it is in the body
		}
		if key := f.vendorKey(); key != "" {
			switch {
			case f.Call.API.Anthropic():
				out["X-Api-Key"] = []string{key}
			case f.Call.API.Google():
				if out["X-Goog-Api-Key"] == nil {
					out["X-Goog-Api-Key"] = []string{key}
				}
			default:
				out["Authorization"] = []string{"Bearer " + key}
			}
		}
	}
	if f.Session != "" && u.provider.Session == provider.SessionHeader {
		out["X-Session-Id"] = []string{f.Session}
	}
	return out
}

// vendorKey returns the key to send in the header of the call's format. A key in another vendor's header stays
// there.
func (f *flight) vendorKey() string {
	if len(f.Keys) == 0 {
		return ""
	}
	return auth.UsualKey(f.Header)
}

// Account hashes what decides whose answer a call gets: the provider's origin, the client's key if it is sent
// along, and the client's headers that matter. Only calls with equal hashes may share an answer.
func (u *relay) Account(f *flight) (sum [sha256.Size]byte) {
	h := sha256.New()
	origin := u.provider.Origin()
	h.Write(origin[:])
	writeHash(h, f.vendorKey())
	var lines []string
	u.forwards(f, func(name string, values []string) {
		if !isNoiseHeader(name) {
			lines = append(lines, name+": "+strings.Join(values, "\x00"))
		}
	})
	slices.Sort(lines)
	for _, l := range lines {
		writeHash(h, l)
	}
	h.Sum(sum[:0])
	return sum
}

// writeHash hashes s so that different sequences of texts have different hashes.
func writeHash(h hash.Hash, s string) {
	part := sha256.Sum256([]byte(s))
	h.Write(part[:])
}

// isHopHeader reports whether a header is about one connection, about the client, or about the body as the client sent
// it.
func isHopHeader(name string) bool {
	switch name {
	case "Accept-Encoding", "Authorization", "Connection", "Content-Encoding", "Content-Length", "Content-Type", "Cookie", "Expect",
		"Forwarded", "Host", "Keep-Alive", "Max-Forwards", "Origin", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection", "Referer",
		"Te", "Trailer", "Transfer-Encoding", "Upgrade", "Via", "X-Api-Key", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto",
		"X-Http-Method", "X-Http-Method-Override", "X-Method-Override", "X-Original-Url", "X-Real-Ip", "X-Rewrite-Url", "X-Session-Id":
		return true
	}
	return strings.HasPrefix(name, "Sec-")
}

// isNoiseHeader reports whether a header that is sent along does not change the answer.
func isNoiseHeader(name string) bool {
	switch name {
	case "Accept", "Accept-Language", "Accept-Charset", "Baggage", "Cache-Control", "Dnt", "Idempotency-Key", "Pragma", "Priority",
		"Sentry-Trace", "Traceparent", "Tracestate", "User-Agent", "X-App", "X-Client-Request-Id", "X-Request-Id", "Request-Id",
		"Session-Id", "Thread-Id", "X-Claude-Code-Session-Id", "X-Gemini-Api-Privileged-User-Id", "X-Goog-Api-Client", "X-Codex-Turn-Metadata", "X-Codex-Window-Id", "X-Session-Affinity":
		return true
	}
	return strings.HasPrefix(name, "X-Stainless-") || strings.HasPrefix(name, "X-B3-") || strings.HasPrefix(name, "X-Datadog-")
}

// answerHeaders returns the headers of a provider that a client gets. It leaves out those on which a browser would
// act, since the address is ours.
func answerHeaders(h http.Header) http.Header {
	out := make(http.Header, len(h))
	for k, v := range h {
		switch k {
		case "Alt-Svc", "Clear-Site-Data", "Connection", "Content-Encoding", "Content-Length", "Date", "Keep-Alive", "Location", "Proxy-Authenticate",
			"Proxy-Connection", "Refresh", "Server", "Service-Worker-Allowed", "Set-Cookie", "Set-Cookie2", "Strict-Transport-Security", "Te", "Trailer",
			"Transfer-Encoding", "Upgrade", "Via":
			continue
		}
		if !strings.HasPrefix(k, "Access-Control-") && !strings.HasPrefix(k, "X-Parley-") {
			out[k] = v
		}
	}
	return out
}
