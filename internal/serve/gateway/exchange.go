package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"parley/internal/ask/dispatch/budget"
	"parley/internal/ask/wire/openai"
	"parley/internal/kit/auth"
	"parley/internal/serve/gateway/format"
	"parley/internal/serve/telemetry"
	"parley/journal"
	"parley/llm"
	"parley/world"
)

// exchange is one call of a client, from request to answer.
type exchange struct {
	g       *Gateway
	out     *client
	header  http.Header // of the request
	rt      *route
	began   time.Time
	body    []byte
	call    *format.Call
	session *session
	callID  int // in the session, while in flight
	turn    int // in the record; unused if served from there
	target  *target
	flight  *flight
	span    *telemetry.Span
	timer   *time.Timer // ends a call whose answer begins too late
	key     [32]byte    // in the cache
	upload  *upload     // of a file of requests, or nil
	end     callEnd
}

// callEnd is how a call ended.
type callEnd int

const (
	endRefused  callEnd = iota // it was not sent, or not recorded
	endRecorded                // with its answer, or a failure
	endReplayed
	endKinds // number of ends
)

// serve answers a call.
func (g *Gateway) serve(w http.ResponseWriter, r *http.Request, rt *route) {
	list := &jsonList{ResponseWriter: w}
	if rt.At.Stream && r.URL.Query().Get("alt") != "sse" {
		w = list
	}
	if rt.API == format.Models {
		rt.API = format.ModelsFor(r.Header)
	}
	x := &exchange{g: g, out: newClient(w, g.cfg.ClientTimeout), header: r.Header, rt: rt, began: time.Now()}
	g.metrics.inFlight.Add(1)
	defer x.count()
	if !x.read(r) {
		return
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	x.answer(ctx, cancel)
	list.end()
}

// answer answers the call. cancel ends it.
func (x *exchange) answer(ctx context.Context, cancel context.CancelCauseFunc) {
	if !x.enter(ctx, cancel) {
		return
	}
	defer x.g.sessions.Leave(x.session, x.callID)
	if x.replayed() {
		return
	}
	x.turn = x.session.Turn()
	if x.rt.API.Asks() {
		x.ask(ctx, cancel)
		return
	}
	if x.rt.API.Batched() {
		x.serveBatch(ctx, cancel)
		return
	}
	x.fetch(ctx, cancel)
}

// count counts a call that is over.
func (x *exchange) count() {
	x.g.ends[x.end].Add(1)
	x.g.metrics.ended(x.rt.API, x.out.status, x.began)
}

// read reads and decodes the request.
func (x *exchange) read(r *http.Request) bool {
	var err error
	if x.body, err = x.out.read(r, x.g.cfg.MaxBody); err != nil {
		status, code := http.StatusBadRequest, "body_unreadable"
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			status, code = http.StatusRequestEntityTooLarge, "body_too_large"
		}
		x.fail(status, code, err.Error())
		return false
	}
	if p := x.rt.program; p != nil { // no model gets the address of the session, and a program that is started again asks the same
		x.body = p.Hide(x.body)
	}
	if x.rt.API.Batched() {
		x.call, err = x.readBatchCall()
	} else {
		x.call, err = format.Decode(x.rt.API, x.rt.At, x.body)
	}
	if err != nil {
		x.fail(http.StatusBadRequest, "body_invalid", err.Error())
		return false
	}
	if x.rt.API.Lists() { // it has no body to hash
		x.call.Digest = sha256.Sum256([]byte(string(x.rt.API) + x.rt.Suffix))
	}
	return true
}

// enter finds the session of the call and enters it.
func (x *exchange) enter(ctx context.Context, cancel context.CancelCauseFunc) bool {
	if x.rt.program != nil {
		return x.enterProgram(cancel)
	}
	id, drawn, err := requestSession(x.rt, x.header)
	var a about
	if err == nil {
		a, err = x.rt.About.withHeaders(x.header)
	}
	if err != nil {
		x.fail(http.StatusBadRequest, "session_invalid", err.Error())
		return false
	}
	name := sessionName{Owner: x.g.owner(x.header), ID: id}
	if drawn && x.g.cfg.Replay {
		var diverged string
		if diverged, err = x.g.sessions.Match(ctx, name, x.call); diverged != "" {
			x.diverged(diverged)
			return false
		}
	}
	if err == nil {
		x.session, err = x.g.sessions.Begin(ctx, name, a)
	}
	if err == nil {
		x.callID, err = x.session.Enter(cancel)
	}
	if err != nil {
		status, code := sessionFault(err)
		x.fail(status, code, err.Error())
		return false
	}
	if !x.g.cfg.Replay {
		x.out.episode = x.session.Header
	}
	return true
}

// enterProgram enters the session of a program.
func (x *exchange) enterProgram(cancel context.CancelCauseFunc) (ok bool) {
	s := x.rt.program
	x.session = s.session
	if e := s.failed(); e != nil {
		x.fail(errorStatus(e, x.rt.API), string(e.Kind), e.Message)
		return false
	}
	var err error
	if x.callID, err = s.Enter(cancel); err != nil {
		x.fail(http.StatusNotFound, "session_unknown", "the program has ended")
	}
	return err == nil
}

// fail answers a call that was not sent.
func (x *exchange) fail(status int, code, message string) {
	x.out.whole(status, x.rt.API.AppendError(nil, status, code, message), nil)
}

// replayed answers from the record, if the call is to be answered from there.
func (x *exchange) replayed() bool {
	p := x.session.Past()
	if p == nil {
		return false
	}
	was := p.Take(x.call)
	if was == nil {
		if x.g.cfg.Replay {
			x.diverged("session " + x.session.ID + ": " + p.Diverged(x.call))
			return true
		}
		x.g.missed.Add(1)
		switch why := p.Missing(x.call); {
		case why == "":
		case x.session.program != nil:
			x.session.program.missed(why)
		default:
			x.g.tell("session %s: a call is not in the record and is asked now: %s; --ignore allows differences", x.session.ID, why)
		}
		return false // a call that is not recorded is sent
	}
	h := http.Header{
		"Content-Type": {was.Wire.Type}, "X-Parley-Replayed": {was.How},
		"X-Parley-Turn": {strconv.Itoa(was.Episode) + ":" + strconv.Itoa(was.Turn.Turn)},
	}
	if was.How == howNearest {
		share := strconv.FormatFloat(was.Share, 'f', 3, 64)
		h["X-Parley-Similarity"] = []string{share}
		x.g.tell("session %s: episode %d, turn %d is replayed for a call that differs (similarity %s): %s", x.session.ID, was.Episode, was.Turn.Turn, share, was.Difference)
	}
	switch was.How {
	case howLoose:
		x.g.loose.Add(1)
	case howNearest:
		x.g.nearest.Add(1)
	}
	if x.session.program != nil {
		x.session.program.repeated(was.Call)
	}
	x.end = endReplayed
	x.out.whole(was.Wire.Status, was.Wire.Body, h)
	return true
}

// diverged answers a call that is not in the record that is replayed.
func (x *exchange) diverged(why string) {
	x.g.missed.Add(1)
	x.fail(http.StatusConflict, "replay_diverged", why+"; parley gateway --ignore and --nearest allow differences")
}

func (g *Gateway) tell(text string, args ...any) {
	g.cfg.Events(Event{Text: fmt.Sprintf(text, args...)})
}

// fetch sends a call that no model answers.
func (x *exchange) fetch(ctx context.Context, cancel context.CancelCauseFunc) {
	t, e := x.model()
	rec := &Call{Replied: journal.Replied{Act: &world.Act{Name: string(x.rt.API) + x.rt.Suffix}}}
	if e == nil {
		x.prepare(t, cancel)
		_, model := llm.SplitModel(t.model)
		e = t.upstream.Fetch(ctx, x.flight, model)
		if e != nil && x.rt.API.Counts() && (e.Status == http.StatusNotFound || e.Status == http.StatusMethodNotAllowed) {
			x.flight.guess()
			e = nil
		}
		if e == nil {
			rec.Response = &llm.Response{Finish: llm.FinishStop, Provider: t.upstream.provider.Name}
		}
	}
	x.finish(rec, e)
}

// prepare makes the flight of the call, and bounds the time until the answer begins.
func (x *exchange) prepare(t *target, cancel context.CancelCauseFunc) {
	f := &flight{
		Call: x.call, Body: x.body, Suffix: x.rt.Suffix, Header: x.header, Out: x.out,
		Created: x.began.Unix(), Admitted: x.g.queue.admitted,
	}
	if p := x.session.program; p != nil {
		f.Tokens = (p.agent.Trainable || p.agent.Tokens) && t.upstream.reportsTokens(t.model)
	} else if x.session.ID != defaultSession {
		f.Session = x.session.ID
	}
	if len(x.g.keys) == 0 && !t.upstream.ownsKey && x.session.program == nil {
		f.OwnKey, f.Keys = true, auth.SentKeys(x.header) // the provider gets the client's keys
	}
	x.flight = f
	wait := x.g.cfg.Deadline
	if v := x.header.Get("X-Parley-Deadline"); v != "" {
		if d, err := time.ParseDuration(v); err == nil && d > 0 {
			wait = min(wait, d)
		}
	}
	x.timer = time.AfterFunc(wait, func() { cancel(&lateError{wait}) })
	x.out.begun = func() {
		x.timer.Stop()
		x.body, x.header, f.Body, f.Header = nil, nil, nil, nil // it is not sent again, and may last long
	}
}

// lateError ends a call whose answer did not begin in time.
type lateError struct{ after time.Duration }

func (e *lateError) Error() string {
	return "no answer began within " + e.after.String() + ", queueing and retries included"
}

// ask answers the call by a model: from the cache, or through dispatch.
func (x *exchange) ask(ctx context.Context, cancel context.CancelCauseFunc) {
	rec := &Call{}
	t, e := x.findTarget()
	if e != nil {
		x.finish(rec, e)
		return
	}
	if p := x.session.program; p != nil {
		if refused := p.admit(); refused != "" {
			x.fail(http.StatusPaymentRequired, "limit_reached", refused) // SDKs try again after 429
			return
		}
	} else if x.session.stepsUsedUp(t.model) {
		x.answerStop(rec, fmt.Sprintf("The step limit of this session is reached: %d answers of this model were given.", x.g.cfg.MaxSteps), "max_steps")
		return
	}
	x.prepare(t, cancel)
	if x.cached(ctx, t, rec) {
		x.finish(rec, nil)
		return
	}
	req, e := x.dispatchRequest(t)
	if e != nil {
		x.finish(rec, e)
		return
	}
	resp, end, err := x.relay(ctx, req)
	defer end()
	if err != nil {
		e := x.refusal(llm.AsError(err))
		x.g.misplaced(e)
		x.finish(rec, x.localFailure(ctx, e))
		return
	}
	rec.Response = x.flight.recorded(resp)
	x.finish(rec, nil)
	x.cacheAnswer(rec)
}

// relay sends the call through all layers of dispatch. end must be called when it is recorded, or will not be.
func (x *exchange) relay(ctx context.Context, req *llm.Request) (resp *llm.Response, end func(), err error) {
	p := x.session.program
	if p == nil {
		resp, err = x.g.dispatch.Relay(withFlight(ctx, x.flight), req)
		return resp, func() {}, err
	}
	for {
		if end, err = p.asked.Begin(ctx, req); err != nil {
			return nil, func() {}, err
		}
		x.flight.Session = req.Session
		resp, err = x.g.dispatch.Relay(withFlight(ctx, x.flight), req)
		if err == nil || x.flight.begun || !p.asked.Paused(err) {
			return resp, end, err
		}
		end()
	}
}

// refusal returns the error of a call that does not fit the budget in the words of the client's format. Others it returns as they are.
func (x *exchange) refusal(e *llm.Error) *llm.Error {
	r, ok := errors.AsType[*budget.RefusalError](e.Err)
	if !ok {
		return e
	}
	out, name := *e, x.call.LimitName()
	out.Message = r.Text(name, name+", or --max-output-tokens of the gateway,")
	return &out
}

// model finds the model that the session gives the call to: that of its agent, or the one that the call names.
func (x *exchange) model() (*target, *llm.Error) {
	if x.session.program != nil {
		return x.session.program.target()
	}
	return x.g.target(x.rt.API, x.call.Request.Model)
}

// findTarget finds the model that answers.
func (x *exchange) findTarget() (*target, *llm.Error) {
	t, e := x.model()
	x.target = t
	if e == nil {
		x.call.LimitOutput(t.maxOutput)
		x.span = x.g.cfg.Telemetry.Start(x.header, x.rt.API, &t.upstream.provider, x.session.ID, x.call)
	}
	return t, e
}

// misplaced reports, once for each upstream, that it does not know its address. The client gets the upstream's
// own words, which do not name the address.
func (g *Gateway) misplaced(e *llm.Error) {
	if e.Status != http.StatusNotFound && e.Status != http.StatusMethodNotAllowed || !strings.Contains(e.Message, " from http") {
		return
	}
	if _, reported := g.misplacedAt.LoadOrStore(e.Provider, true); !reported {
		g.tell("upstream %s: %s", e.Provider, e.Message)
	}
}

// recordedRequest returns the request as it is recorded: with the model that was asked. The call is over, so nobody
// needs the client's name of the model.
func (x *exchange) recordedRequest() *llm.Request {
	q := &x.call.Request
	q.Model, q.Fallbacks = x.target.model, x.target.fallbacks
	return q
}

// dispatchRequest returns the call as dispatch needs it: its size, its model, and its position in the queue. It has
// no schema and no temperature, since the answer passes through unchanged.
func (x *exchange) dispatchRequest(t *target) (*llm.Request, *llm.Error) {
	req, e := x.g.priced(t, x.call, x.body)
	if e == nil {
		req.Order = x.g.queue.position(&x.session.Next)
	}
	return req, e
}

// priced returns a call, whose body is b, as dispatch needs it for its price.
func (g *Gateway) priced(t *target, c *format.Call, b []byte) (*llm.Request, *llm.Error) {
	q := &c.Request
	req := &llm.Request{
		Model: t.model, Messages: q.Messages, Tools: q.Tools, MaxTokens: c.MaxTokens(), Tier: q.Tier,
		Extra: q.Extra, Refers: q.Refers, Fallbacks: t.fallbacks,
	}
	if !t.upstream.Speaks(c.API) && len(t.fallbacks) == 0 {
		req.Extra = nil // it is not sent, so it costs nothing
	}
	if max(c.Choices, c.Drafts) > 1 && q.MaxTokens == 0 && g.cfg.Settings.HasBudget() {
		return nil, &llm.Error{Kind: llm.KindBadRequest, Status: http.StatusBadRequest, Code: "max_tokens_missing",
			Message: "n: with a budget to keep, a call for several answers must say how long they may be: set max_completion_tokens"}
	}
	if q.Schema != nil || c.Unread > 0 || c.Audio { // they count as input
		req.Extra = maps.Clone(req.Extra)
		if req.Extra == nil {
			req.Extra = map[string]json.RawMessage{}
		}
		if q.Schema != nil {
			req.Extra["schema"] = q.Schema.JSON
		}
		if c.Audio {
			req.Extra["input_audio"] = json.RawMessage("true")
		}
		req.Extra["unread"] = b[:c.Unread]
	}
	return req, nil
}

// localFailure returns the error of a call that ended on this side.
func (x *exchange) localFailure(ctx context.Context, e *llm.Error) *llm.Error {
	out := *e
	cause := context.Cause(ctx)
	_, late := errors.AsType[*lateError](cause)
	switch {
	case cause == nil && !x.out.gone:
		return e
	case late:
		out.Kind, out.Status, out.Message = llm.KindTimeout, http.StatusGatewayTimeout, cause.Error()
		if e.Kind != llm.KindCanceled {
			out.Message += "; last: " + e.Message
		}
		x.flight.Status = 0 // the provider's status is not the cause
	case errors.Is(cause, errAborted), errors.Is(cause, errStopping):
		out.Kind, out.Status, out.Message = llm.KindCanceled, http.StatusServiceUnavailable, cause.Error()
		x.flight.Status = 0
	default:
		x.out.gone = true
		out.Kind, out.Status = llm.KindCanceled, 499
		out.Message = "the client went away"
		if x.out.stuck {
			out.Message = fmt.Sprintf("the client took nothing for %v", x.g.cfg.ClientTimeout)
		}
		if n := len(x.flight.Sent); n > 0 {
			out.Message += fmt.Sprintf(" after %d bytes of the answer", n)
		}
	}
	return &out
}

// answerStop answers for a model of which the session had all its answers: with a text that tells an agent to stop.
func (x *exchange) answerStop(rec *Call, why, header string) {
	r := &llm.Response{
		Text:   why + " Stop now: call no more tools and end the task with what you have.",
		Finish: llm.FinishStop, Provider: ownProvider, Model: x.call.Request.Model, ID: fmt.Sprintf("stop-%d-%d", x.session.Episode, x.turn),
	}
	rec.Response = r
	meta := openai.Meta{ID: r.ID, Model: r.Model, Created: x.began.Unix(), Usage: x.call.Usage}
	h := http.Header{"Content-Type": {"application/json"}, "X-Parley-Stop": {header}}
	x.flight = &flight{Status: http.StatusOK, Answer: h}
	switch {
	case x.rt.API == format.Embeddings || x.rt.API.Exact():
		x.flight = nil
		rec.Response = nil
		x.finish(rec, &llm.Error{Kind: llm.KindRefused, Status: http.StatusTooManyRequests, Code: "max_steps", Message: "the step limit of this session is reached"})
		return
	case x.call.Stream:
		h["Content-Type"] = []string{"text/event-stream; charset=utf-8"}
		x.flight.Held = openai.AppendStream(nil, x.rt.API.NewWriter(meta), r)
	default:
		x.flight.Held = x.rt.API.AppendResponse(nil, meta, r)
	}
	x.finish(rec, nil)
}

// finish records the call and then sends the end of its answer.
func (x *exchange) finish(rec *Call, e *llm.Error) {
	if x.timer != nil {
		x.timer.Stop()
	}
	if x.flight == nil {
		x.flight = &flight{}
	}
	f := x.flight
	if rec.Error = e; e != nil {
		rec.Response = nil
		x.setErrorAnswer(e)
	}
	if p := x.session.program; p != nil && p.fault(e, x.out.gone) {
		x.send(nil)
		return
	}
	if x.target != nil {
		rec.Request = x.recordedRequest()
	}
	rec.Turn = journal.Turn{Episode: x.session.Episode, Turn: x.turn}
	rec.Label, rec.Digest, rec.At = string(x.rt.API), x.call.Turn(), time.Now()
	rec.Wire = wireAnswer{Status: f.Status, Type: f.Answer.Get("Content-Type"), Body: f.Held, Cut: x.out.gone}
	if f.begun {
		rec.Wire.Type, rec.Wire.Body = f.Type, append(f.Sent, f.Held...)
	}
	x.session.Answered(rec)
	x.g.metrics.answered(x.rt.API, rec)
	x.span.End(rec.Response, e)
	began := time.Now()
	err := x.keep(rec)
	x.g.metrics.recorded.Observe(time.Since(began).Seconds())
	if err == nil {
		x.end = endRecorded
	}
	x.send(err)
}

// keep records the call: as one of an ask in a run, or in the record of the gateway.
func (x *exchange) keep(rec *Call) error {
	if p := x.session.program; p != nil {
		return p.Keep(rec)
	}
	err := x.g.ledger.Keep(x.session.about.agent(), rec)
	if err == nil { // of a program, its run counts it
		x.g.dispatch.Budget().Recorded(rec.Cost())
	}
	return err
}

// send sends the rest of the answer, unless it could not be recorded.
func (x *exchange) send(unrecorded error) {
	f := x.flight
	switch {
	case x.out.gone:
	case unrecorded != nil && f.begun:
		panic(http.ErrAbortHandler) // closes the connection, so that the answer cannot be taken for a whole one
	case unrecorded != nil:
		x.fail(http.StatusInternalServerError, "record_failed", unrecorded.Error())
	case f.begun:
		_, _ = x.out.Write(f.Held) // the client may be gone
	default:
		x.out.whole(f.Status, f.Held, f.Answer)
	}
}

// setErrorAnswer sets the answer to an error: the provider's own words, if there are any.
func (x *exchange) setErrorAnswer(e *llm.Error) {
	f := x.flight
	status := errorStatus(e, x.rt.API)
	code := e.Code
	if code == "" {
		code = string(e.Kind)
	}
	switch {
	case f.begun && !f.ProviderError:
		f.Held = x.rt.API.AppendErrorEvent(nil, status, code, e.Message)
	case f.begun, f.Status >= 400 && f.Status == e.Status:
	default:
		f.Status, f.Answer = status, http.Header{"Content-Type": {"application/json"}}
		f.Held = x.rt.API.AppendError(nil, status, code, e.Message)
		if status == http.StatusServiceUnavailable {
			f.Answer["Retry-After"] = []string{"1"}
		}
	}
}

// errorStatus returns the HTTP status of an error.
func errorStatus(e *llm.Error, api format.API) int {
	if e.Status >= 400 {
		return e.Status
	}
	switch e.Kind {
	case llm.KindBudget:
		return http.StatusPaymentRequired
	case llm.KindRateLimited, llm.KindQuota:
		return http.StatusTooManyRequests
	case llm.KindTimeout:
		return http.StatusGatewayTimeout
	case llm.KindCanceled:
		return http.StatusServiceUnavailable
	case llm.KindOverloaded:
		if api.Anthropic() {
			return 529
		}
		return http.StatusServiceUnavailable
	case llm.KindTransport, llm.KindServer, llm.KindMalformed:
		return http.StatusBadGateway
	default:
		return http.StatusBadRequest
	}
}

// cachedAnswer is a cached answer: the bytes that the client got, and the decoded response.
type cachedAnswer struct {
	Status   int           `json:"status"`
	Type     string        `json:"type"`
	Body     []byte        `json:"body"`
	Response *llm.Response `json:"response"`
}

// cacheKey hashes everything that can change the answer, and who may get it: the account that pays, the
// endpoint, the model, every member of the body, the gateway's limit on it, and the number of the draw in the session.
func (x *exchange) cacheKey(t *target, sample int) [32]byte {
	h := sha256.New()
	account, model := t.upstream.Account(x.flight), sha256.Sum256([]byte(t.model))
	h.Write([]byte("gateway 3\x00"))
	h.Write(account[:])
	h.Write(model[:])
	h.Write(x.call.Digest[:]) // includes the endpoint
	h.Write(binary.AppendVarint(nil, int64(sample)))
	h.Write(binary.AppendVarint(nil, int64(x.call.Limited)))
	var key [32]byte
	h.Sum(key[:0])
	return key
}

// sample numbers equal calls, so that they are different draws.
func (x *exchange) sample() int {
	n := x.session.Sample(x.call.Turn())
	if p := x.session.program; p != nil {
		n += p.asked.Sample() // of another episode, or another ask, it is another draw
	}
	return n
}

// cached answers from the cache, if it can.
func (x *exchange) cached(ctx context.Context, t *target, rec *Call) bool {
	if x.g.cfg.Cache == nil {
		return false
	}
	x.key = x.cacheKey(t, x.sample())
	b, ok := x.g.cfg.Cache.Load(ctx, x.key)
	if !ok {
		return false
	}
	var c cachedAnswer
	if json.Unmarshal(b, &c) != nil || c.Response == nil {
		return false
	}
	c.Response.Metadata = llm.Metadata{Cached: true}
	rec.Response = c.Response
	x.flight.Status, x.flight.Held = c.Status, c.Body
	x.flight.Answer = http.Header{"Content-Type": {c.Type}, "X-Parley-Cached": {"true"}}
	return true
}

// cacheAnswer stores an answer in the cache, unless a fallback gave it. Errors are ignored.
func (x *exchange) cacheAnswer(rec *Call) {
	r := rec.Response
	if x.g.cfg.Cache == nil || r.Finish == llm.FinishAborted || rec.Wire.Cut || x.flight.Asked != x.target.model {
		return
	}
	if b, err := json.Marshal(cachedAnswer{rec.Wire.Status, rec.Wire.Type, rec.Wire.Body, r}); err == nil {
		_ = x.g.cfg.Cache.Save(x.key, b)
	}
}

// fairQueue gives calls their position in the queue so that sessions take turns, however many calls one has: after the last
// call of their own session, but not before the call that is served now.
type fairQueue struct {
	mu  sync.Mutex
	now int64 // position of the latest call that was admitted
}

// position returns the position of a session's next call; next belongs to the session.
func (f *fairQueue) position(next *int64) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := max(f.now, *next)
	*next = at + 1
	return at
}

// admitted records that a call left the queue.
func (f *fairQueue) admitted(position int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now = max(f.now, position)
}
