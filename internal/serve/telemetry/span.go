package telemetry

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"parley/internal/ask/provider"
	"parley/internal/serve/gateway/format"
	"parley/journal"
	"parley/llm"
)

// Span is the span of one call, which is also measured. It may be nil.
type Span struct {
	exporter    *Exporter
	sampled     bool // it is sent
	operation   operation
	name        string
	id          [8]byte
	parent      parent
	began       time.Time
	attributes  []message
	localParent bool // its parent, if it has one, is of this process
	internal    bool // nothing is asked
}

// Start begins the span of a call, as a child of the one in the client's header.
func (x *Exporter) Start(h http.Header, api format.API, p *provider.Provider, session string, c *format.Call) *Span {
	if x == nil {
		return nil
	}
	from, remote := parentOf(h)
	if !remote {
		newID(from.trace[:])
	}
	s := &Span{exporter: x, operation: operation{name: operationOf(api), provider: x.vendor(p.Name), model: c.Request.Model}, parent: from, began: time.Now()}
	if s.sampled = x.samples(from, remote); s.sampled {
		s.name, s.attributes = s.operation.name+" "+s.operation.model, callAttributes(s.operation, p, session, c)
		newID(s.id[:])
	}
	return s
}

// newID fills id with random bytes. An id of zeros is not valid.
func newID(id []byte) {
	_, _ = rand.Read(id) // it never fails
	id[len(id)-1] |= 1
}

// End ends the span with the result of the call.
func (s *Span) End(r *llm.Response, e *llm.Error) {
	if s == nil {
		return
	}
	at := time.Now()
	s.exporter.measure(s.operation, at.Sub(s.began), r, e)
	if s.sampled {
		s.endAt(at, r, e)
	}
}

// endAt sends the span, which ended at a time.
func (s *Span) endAt(at time.Time, r *llm.Response, e *llm.Error) {
	var status message
	switch {
	case e != nil:
		s.attributes = append(s.attributes, textOf(errorType, string(e.Kind)))
		status = message(nil).text(2, string(e.Kind)).number(3, 2)
	case r != nil:
		s.attributes = append(s.attributes, answerAttributes(r)...)
	}
	s.exporter.spans.offer(s.message(at, status))
}

// message returns the span as OTLP has it.
func (s *Span) message(end time.Time, status message) message {
	kind := uint64(3) // client
	if s.internal {
		kind = 1
	}
	flags := uint32(1 | 1<<8) // it is sampled, and the next bit counts
	m := message(nil).bytes(1, s.parent.trace[:]).bytes(2, s.id[:])
	if s.parent.span != [8]byte{} {
		m = m.text(3, s.parent.state).bytes(4, s.parent.span[:])
		if !s.localParent {
			flags |= 1 << 9 // the parent is in another process
		}
	}
	m = m.text(5, s.name).number(6, kind).long(7, uint64(s.began.UnixNano())).long(8, uint64(end.UnixNano()))
	return m.all(9, s.attributes).bytes(15, status).short(16, flags)
}

// parent is what the header of a client says about the span that a call belongs to.
type parent struct {
	trace   [16]byte
	span    [8]byte
	sampled bool
	state   string
}

// maxState is the longest tracestate that is passed on, as its specification demands at least.
const maxState = 512

// parentOf reads the traceparent header. A wrong one counts as missing.
func parentOf(h http.Header) (p parent, ok bool) {
	parts := strings.SplitN(h.Get("Traceparent"), "-", 5)
	if len(parts) < 4 || parts[0] == "ff" || parts[0] == "00" && len(parts) > 4 || strings.ToLower(strings.Join(parts, "")) != strings.Join(parts, "") {
		return parent{}, false
	}
	var version, flags [1]byte
	for i, to := range [][]byte{version[:], p.trace[:], p.span[:], flags[:]} {
		if len(parts[i]) != 2*len(to) {
			return parent{}, false
		}
		if _, err := hex.Decode(to, []byte(parts[i])); err != nil {
			return parent{}, false
		}
	}
	if p.trace == [16]byte{} || p.span == [8]byte{} {
		return parent{}, false
	}
	p.sampled = flags[0]&1 != 0
	if state := strings.Join(h.Values("Tracestate"), ","); len(state) <= maxState {
		p.state = state
	}
	return p, true
}

// Trace is the trace of a run, or of questions: a span for all of it, one for each episode that ends,
// and one for each call, which is also measured. A nil Trace does nothing. It may be used from several
// goroutines.
type Trace struct {
	exporter *Exporter
	root     *Span // nil: there are no spans

	mu       sync.Mutex
	episodes map[int]*Span // that have begun
}

// StartTrace begins a trace. id is that of the run, or empty.
func (x *Exporter) StartTrace(name, id string) *Trace {
	if x == nil {
		return nil
	}
	t := &Trace{exporter: x, episodes: map[int]*Span{}}
	root := t.span(name, nil)
	root.internal = true
	newID(root.parent.trace[:])
	if x.samples(root.parent, false) {
		t.root = root
	}
	if id != "" {
		root.attributes = []message{textOf(runID, id)}
	}
	return t
}

// traced reports whether there are spans.
func (t *Trace) traced() bool { return t != nil && t.root != nil }

// span begins a span below another.
func (t *Trace) span(name string, below *Span) *Span {
	s := &Span{exporter: t.exporter, name: name, began: time.Now(), localParent: true}
	newID(s.id[:])
	if below != nil {
		s.parent = parent{trace: below.parent.trace, span: below.id}
	}
	return s
}

// episode returns the span of an episode.
func (t *Trace) episode(n int) *Span {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.episodes[n]
	if s == nil {
		s = t.span("episode", t.root)
		s.internal, s.attributes = true, []message{intOf(episodeNumber, n)}
		t.episodes[n] = s
	}
	return s
}

// Replied adds the call of an episode that a model has answered.
func (t *Trace) Replied(r *journal.Replied) {
	if t == nil || r.Request == nil {
		return
	}
	op, took := t.measure(r.Request, r.Response, r.Error)
	if t.traced() {
		at := []message{intOf(episodeNumber, r.Episode), textOf(seatName, r.Seat), textOf(agentName, r.Agent), textOf(callLabel, r.Label)}
		t.call(t.episode(r.Episode), r.Request, op, r.At, took, r.Response, r.Error, at)
	}
}

// Asked adds a question that belongs to no episode.
func (t *Trace) Asked(req *llm.Request, r llm.Result) {
	if t == nil {
		return
	}
	e := llm.AsError(r.Err)
	op, took := t.measure(req, r.Response, e)
	if t.traced() {
		t.call(t.root, req, op, time.Now(), took, r.Response, e, nil)
	}
}

// measure measures a call, and returns what it was and how long its last attempt took.
func (t *Trace) measure(req *llm.Request, resp *llm.Response, e *llm.Error) (op operation, took time.Duration) {
	provider, model := llm.SplitModel(req.Model)
	op = operation{name: "chat", provider: t.exporter.vendor(provider), model: model}
	switch {
	case resp != nil:
		took = max(0, resp.Metadata.Latency)
	case e != nil:
		took = max(0, e.Metadata.Latency)
	}
	t.exporter.measure(op, took, resp, e)
	return op, took
}

// call sends the span of a call that ended at a time.
func (t *Trace) call(below *Span, req *llm.Request, op operation, at time.Time, took time.Duration, resp *llm.Response, e *llm.Error, more []message) {
	s := t.span(op.name+" "+op.model, below)
	s.began = at.Add(-took)
	s.attributes = append(requestAttributes(op, req.Session, req), more...)
	s.endAt(at, resp, e)
	t.mu.Lock()
	defer t.mu.Unlock()
	if s.began.Before(below.began) {
		below.began = s.began
	}
}

// Ended ends the span of an episode.
func (t *Trace) Ended(e *journal.Ended) {
	if !t.traced() {
		return
	}
	s := t.episode(e.Episode)
	t.mu.Lock()
	delete(t.episodes, e.Episode)
	t.mu.Unlock()
	for _, one := range e.Outcome.Scores {
		if one.Seat == "" {
			s.attributes = append(s.attributes, floatOf(scorePrefix+one.Name, one.Value))
		}
	}
	var failed *llm.Error
	if e.Outcome.Failed != "" {
		failed = &llm.Error{Kind: "failed"} // why is the text of a world
	}
	s.endAt(e.At, nil, failed)
}

// End ends the trace. Episodes that did not end have no span.
func (t *Trace) End(state string) {
	if t.traced() {
		t.root.attributes = append(t.root.attributes, textOf(runState, state))
		t.root.endAt(time.Now(), nil, nil)
	}
}

// All names of the GenAI conventions.
const (
	operationName           = "gen_ai.operation.name"
	providerName            = "gen_ai.provider.name"
	conversationID          = "gen_ai.conversation.id"
	requestModel            = "gen_ai.request.model"
	requestMaxTokens        = "gen_ai.request.max_tokens"
	requestTemperature      = "gen_ai.request.temperature"
	requestTopP             = "gen_ai.request.top_p"
	requestTopK             = "gen_ai.request.top_k"
	requestSeed             = "gen_ai.request.seed"
	requestStop             = "gen_ai.request.stop_sequences"
	requestFrequencyPenalty = "gen_ai.request.frequency_penalty"
	requestPresencePenalty  = "gen_ai.request.presence_penalty"
	requestChoices          = "gen_ai.request.choice.count"
	requestStream           = "gen_ai.request.stream"
	responseID              = "gen_ai.response.id"
	responseModel           = "gen_ai.response.model"
	responseFinish          = "gen_ai.response.finish_reasons"
	responseFirst           = "gen_ai.response.time_to_first_chunk"
	usageInput              = "gen_ai.usage.input_tokens"
	usageOutput             = "gen_ai.usage.output_tokens"
	usageCacheRead          = "gen_ai.usage.cache_read.input_tokens"
	usageCacheWrite         = "gen_ai.usage.cache_creation.input_tokens"
	usageReasoning          = "gen_ai.usage.reasoning.output_tokens"
	tokenType               = "gen_ai.token.type"
	errorType               = "error.type"
	serverAddress           = "server.address"
	serverPort              = "server.port"

	// Parley's own names.
	retryCount  = "parley.retries"
	fromCache   = "parley.cached"
	costDollars = "parley.cost_usd"

	runID         = "parley.run"
	runState      = "parley.state"
	episodeNumber = "parley.episode"
	seatName      = "parley.seat"
	agentName     = "parley.agent"
	callLabel     = "parley.label"
	scorePrefix   = "parley.score." // and its name
)

func operationOf(api format.API) string {
	if api == format.Embeddings {
		return "embeddings"
	}
	return "chat"
}

// Know tells x the providers that calls go to, before the first call: one may have a name of its own and be an account of a vendor.
func (x *Exporter) Know(all []provider.Provider) {
	if x == nil {
		return
	}
	x.vendors = map[string]string{}
	for _, p := range all {
		x.vendors[p.Name] = vendorOf(p)
	}
}

// vendor returns the conventions' name of the vendor of a provider.
func (x *Exporter) vendor(name string) string { return cmp.Or(x.vendors[name], vendorName(name)) }

// vendorOf returns the conventions' name of the vendor at whose address a provider is, or else of the one with its name.
func vendorOf(p provider.Provider) string {
	host := ""
	if u, err := url.Parse(p.Servers()[0].BaseURL); err == nil {
		host = u.Hostname()
	}
	switch {
	case p.Dialect == "bedrock":
		return vendorName("bedrock")
	case strings.HasSuffix(host, ".openai.azure.com"):
		return vendorName("azure")
	case host == "aiplatform.googleapis.com" || strings.HasSuffix(host, "-aiplatform.googleapis.com"):
		return vendorName("vertex")
	case host == "generativelanguage.googleapis.com":
		return vendorName("gemini")
	case host == "api.openai.com":
		return "openai"
	case host == "api.anthropic.com":
		return "anthropic"
	default:
		return vendorName(p.Name)
	}
}

// vendorName returns the conventions' name of a provider, or ours if they have none.
func vendorName(name string) string {
	switch name {
	case "gemini", "gemini-openai":
		return "gcp.gemini"
	case "azure", "azure-responses":
		return "azure.ai.openai"
	case "vertex", "vertex-anthropic":
		return "gcp.vertex_ai"
	case "bedrock":
		return "aws.bedrock"
	case "mistral":
		return "mistral_ai"
	case "openai-responses":
		return "openai"
	case "xai":
		return "x_ai"
	default:
		return name
	}
}

func callAttributes(op operation, p *provider.Provider, session string, c *format.Call) []message {
	out := append(requestAttributes(op, session, &c.Request), boolOf(requestStream, c.Stream))
	if u, err := url.Parse(p.BaseURL); err == nil {
		out = append(out, textOf(serverAddress, u.Hostname()))
		if port, err := strconv.Atoi(u.Port()); err == nil {
			out = append(out, intOf(serverPort, port))
		}
	}
	if c.Choices > 1 {
		out = append(out, intOf(requestChoices, c.Choices))
	}
	return out
}

// requestAttributes describes the request of an operation.
func requestAttributes(op operation, session string, q *llm.Request) []message {
	out := []message{
		textOf(operationName, op.name), textOf(providerName, op.provider),
		textOf(conversationID, session), textOf(requestModel, op.model),
	}
	if q.MaxTokens > 0 {
		out = append(out, intOf(requestMaxTokens, q.MaxTokens))
	}
	if len(q.Stop) > 0 {
		out = append(out, listOf(requestStop, q.Stop))
	}
	if q.Seed != nil {
		out = append(out, intOf(requestSeed, *q.Seed))
	}
	if q.TopK != nil {
		out = append(out, intOf(requestTopK, *q.TopK))
	}
	for name, v := range map[string]*float64{requestTemperature: q.Temperature, requestTopP: q.TopP, requestFrequencyPenalty: q.FrequencyPenalty, requestPresencePenalty: q.PresencePenalty} {
		if v != nil {
			out = append(out, floatOf(name, *v))
		}
	}
	return out
}

func answerAttributes(r *llm.Response) []message {
	u := r.Usage
	return []message{
		textOf(responseID, r.ID), textOf(responseModel, r.Model),
		listOf(responseFinish, []string{string(r.Finish)}),
		floatOf(responseFirst, r.Metadata.FirstByte.Seconds()),
		intOf(usageInput, u.Input), intOf(usageOutput, u.Output),
		intOf(usageCacheRead, u.Cached), intOf(usageCacheWrite, u.CacheWrite+u.CacheWriteLong),
		intOf(usageReasoning, u.Reasoning),
		intOf(retryCount, max(0, r.Metadata.Attempts-1)), boolOf(fromCache, r.Metadata.Cached),
		floatOf(costDollars, r.Metadata.Cost.Dollars()),
	}
}
