package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"time"

	"parley/internal/serve/gateway/format"
	"parley/internal/serve/gateway/ledger"
	"parley/internal/serve/gateway/relay"
	"parley/internal/serve/gateway/session"
	"parley/internal/wire/completion"
	"parley/llm"
)

// ask has a model answer the call: from the cache, or through dispatch.
func (x *exchange) ask(ctx context.Context, cancel context.CancelCauseFunc) {
	rec := &ledger.Call{}
	t, e := x.aim()
	if e != nil {
		x.finish(rec, e)
		return
	}
	if x.session.Spent(t.model) {
		x.stop(rec)
		return
	}
	x.prepare(t, cancel)
	if x.cached(t, rec) {
		x.finish(rec, nil)
		return
	}
	req, e := x.question(t)
	if e != nil {
		x.finish(rec, e)
		return
	}
	resp, err := x.g.dispatch.Ask(relay.With(ctx, x.flight), req)
	if err != nil {
		e := llm.AsError(err)
		x.g.misplaced(e)
		x.finish(rec, x.failure(ctx, e))
		return
	}
	rec.Response = resp
	x.finish(rec, nil)
	x.keep(rec)
}

// aim finds who answers.
func (x *exchange) aim() (*target, *llm.Error) {
	t, e := x.g.target(x.rt.api, x.call.Request.Model)
	x.target = t
	if e == nil {
		x.span = x.g.cfg.Tracer.Start(x.header, x.rt.api, t.upstream.Provider(), x.session.ID, x.call)
	}
	return t, e
}

// misplaced tells, once for each upstream, that it does not know the address it is asked at.
// The client gets the upstream's own words, which do not say where it was asked.
func (g *Gateway) misplaced(e *llm.Error) {
	if e.Status != http.StatusNotFound && e.Status != http.StatusMethodNotAllowed || !strings.Contains(e.Message, " from http") {
		return
	}
	if _, told := g.lost.LoadOrStore(e.Provider, true); !told {
		g.tell("upstream %s: %s", e.Provider, e.Message)
	}
}

// asked is the question as it is recorded: of the model that was really asked. The call is
// over by then, so that nobody needs the client's name for it any more.
func (x *exchange) asked() *llm.Request {
	q := &x.call.Request
	q.Model, q.Fallbacks = x.target.model, x.target.fallbacks
	return q
}

// question is the call as dispatch sees it: how large it is, whom it asks, and its place
// in the queue. It has no schema and no temperature, since the answer goes through as it is,
// and to its own client only.
func (x *exchange) question(t *target) (*llm.Request, *llm.Error) {
	q := &x.call.Request
	req := &llm.Request{
		Model: t.model, Messages: q.Messages, Tools: q.Tools, MaxTokens: x.call.Most(), Tier: q.Tier,
		Extra: q.Extra, Refers: q.Refers, Order: x.g.queue.place(&x.session.Next), Fallbacks: t.fallbacks,
	}
	if max(x.call.Choices, x.call.Drafts) > 1 && q.MaxTokens == 0 && x.g.cfg.Budget > 0 {
		return nil, &llm.Error{Kind: llm.KindBadRequest, Status: http.StatusBadRequest, Code: "max_tokens_missing",
			Message: "n: with a budget to keep, a call for several answers must say how long they may be: set max_completion_tokens"}
	}
	if q.Schema != nil || x.call.Unread > 0 || x.call.Audio { // they weigh too
		req.Extra = maps.Clone(q.Extra)
		if req.Extra == nil {
			req.Extra = map[string]json.RawMessage{}
		}
		if q.Schema != nil {
			req.Extra["schema"] = q.Schema.JSON
		}
		if x.call.Audio {
			req.Extra["input_audio"] = json.RawMessage("true")
		}
		req.Extra["unread"] = x.body[:x.call.Unread]
	}
	return req, nil
}

// failure says how a call ended that was ended from this side.
func (x *exchange) failure(ctx context.Context, e *llm.Error) *llm.Error {
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
		x.flight.Status = 0 // what a provider said is not why it ended
	case errors.Is(cause, session.ErrAborted), errors.Is(cause, errStopping):
		out.Kind, out.Status, out.Message = llm.KindCanceled, http.StatusServiceUnavailable, cause.Error()
		x.flight.Status = 0
	default:
		x.out.gone = true
		out.Kind, out.Status = llm.KindCanceled, 499
		out.Message = "the client went away"
		if x.out.stuck {
			out.Message = fmt.Sprintf("the client took nothing for %v", x.g.cfg.Patience)
		}
		if n := len(x.flight.Sent); n > 0 {
			out.Message += fmt.Sprintf(" after %d bytes of the answer", n)
		}
	}
	return &out
}

// stop answers for a model of which the session has had enough: with words that tell an
// agent to stop, in the form it expects.
func (x *exchange) stop(rec *ledger.Call) {
	r := &llm.Response{
		Text:   fmt.Sprintf("The step limit of this session is reached: %d answers of this model were given. Stop now: call no more tools and end the task with what you have.", x.g.cfg.MaxSteps),
		Finish: llm.FinishStop, Provider: session.Own, Model: x.call.Request.Model, ID: fmt.Sprintf("stop-%d-%d", x.session.Episode, x.turn),
	}
	rec.Response = r
	meta := completion.Meta{ID: r.ID, Model: r.Model, Created: x.began.Unix(), Usage: x.call.Usage}
	h := http.Header{"Content-Type": {"application/json"}, "X-Parley-Stop": {"max_steps"}}
	x.flight = &relay.Flight{Status: http.StatusOK, Answer: h}
	switch {
	case x.rt.api == format.Embeddings:
		x.flight = nil
		rec.Response = nil
		x.finish(rec, &llm.Error{Kind: llm.KindRefused, Status: http.StatusTooManyRequests, Code: "max_steps", Message: "the step limit of this session is reached"})
		return
	case x.call.Stream:
		h["Content-Type"] = []string{"text/event-stream; charset=utf-8"}
		x.flight.Held = completion.AppendStream(nil, x.rt.api.NewWriter(meta), r)
	default:
		x.flight.Held = x.rt.api.AppendResponse(nil, meta, r)
	}
	x.finish(rec, nil)
}

// finish records the call, and only then sends the end of its answer.
func (x *exchange) finish(rec *ledger.Call, e *llm.Error) {
	if x.patient != nil {
		x.patient.Stop()
	}
	if x.flight == nil {
		x.flight = &relay.Flight{}
	}
	f := x.flight
	if rec.Error = e; e != nil {
		rec.Response = nil
		x.refuse(e)
	}
	if x.target != nil {
		rec.Request = x.asked()
	}
	rec.Episode, rec.Turn, rec.Note = x.session.Episode, x.turn, x.note
	rec.Label, rec.Digest, rec.At = string(x.rt.api), x.call.Turn(), time.Now()
	rec.Wire = ledger.Wire{Status: f.Status, Type: f.Answer.Get("Content-Type"), Body: f.Held, Cut: x.out.gone}
	if f.Begun() {
		rec.Wire.Type, rec.Wire.Body = f.Type, append(f.Sent, f.Held...)
	}
	x.session.Answered(rec)
	x.g.metrics.answered(x.rt.api, rec)
	x.span.End(rec.Response, e)
	began := time.Now()
	err := x.g.ledger.Keep(rec)
	x.g.metrics.recorded.Observe(time.Since(began).Seconds())
	if err == nil {
		x.end = endRecorded
		if e != nil {
			x.end = endFailed
		}
	}
	x.send(err)
}

// send sends what is left of the answer, unless it could not be recorded.
func (x *exchange) send(unrecorded error) {
	f := x.flight
	switch {
	case x.out.gone:
	case unrecorded != nil && f.Begun():
		x.out.abort()
	case unrecorded != nil:
		x.fail(http.StatusInternalServerError, "record_failed", unrecorded.Error())
	case f.Begun():
		_, _ = x.out.Write(f.Held) // a client that went away now has missed the end only
	default:
		x.out.whole(f.Status, f.Held, f.Answer)
	}
}

// refuse puts an error into the form the client expects: the provider's own words where
// there are some.
func (x *exchange) refuse(e *llm.Error) {
	f := x.flight
	status := statusOf(e, x.rt.api)
	code := e.Code
	if code == "" {
		code = string(e.Kind)
	}
	switch {
	case f.Begun() && !f.Said:
		f.Held = x.rt.api.AppendErrorEvent(nil, status, code, e.Message)
	case f.Begun(), f.Status >= 400 && f.Status == e.Status:
	default:
		f.Status, f.Answer = status, http.Header{"Content-Type": {"application/json"}}
		f.Held = x.rt.api.AppendError(nil, status, code, e.Message)
		if status == http.StatusServiceUnavailable {
			f.Answer["Retry-After"] = []string{"1"}
		}
	}
}

// statusOf is the status that a client is told of an error.
func statusOf(e *llm.Error, api format.API) int {
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
