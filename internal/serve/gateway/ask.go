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

	"parley/internal/ask/wire/openai"
	"parley/internal/serve/gateway/format"
	"parley/llm"
)

// ask answers the call by a model: from the cache, or through dispatch.
func (x *exchange) ask(ctx context.Context, cancel context.CancelCauseFunc) {
	rec := &Call{}
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
	resp, err := x.g.dispatch.Ask(with(ctx, x.flight), req)
	if err != nil {
		e := llm.AsError(err)
		x.g.misplaced(e)
		x.finish(rec, x.failure(ctx, e))
		return
	}
	rec.Response = x.flight.Recorded(resp)
	x.finish(rec, nil)
	x.keep(rec)
}

// aim finds the model that answers.
func (x *exchange) aim() (*target, *llm.Error) {
	t, e := x.g.target(x.rt.API, x.call.Request.Model)
	x.target = t
	if e == nil {
		x.span = x.g.cfg.Telemetry.Start(x.header, x.rt.API, t.upstream.Provider(), x.session.ID, x.call)
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

// asked returns the request as it is recorded: with the model that was asked. The call is over, so nobody
// needs the client's name of the model.
func (x *exchange) asked() *llm.Request {
	q := &x.call.Request
	q.Model, q.Fallbacks = x.target.model, x.target.fallbacks
	return q
}

// question returns the call as dispatch needs it: its size, its model, and its position in the queue. It has
// no schema and no temperature, since the answer passes through unchanged.
func (x *exchange) question(t *target) (*llm.Request, *llm.Error) {
	q := &x.call.Request
	req := &llm.Request{
		Model: t.model, Messages: q.Messages, Tools: q.Tools, MaxTokens: x.call.MaxTokens(), Tier: q.Tier,
		Extra: q.Extra, Refers: q.Refers, Order: x.g.queue.position(&x.session.Next), Fallbacks: t.fallbacks,
	}
	if max(x.call.Choices, x.call.Drafts) > 1 && q.MaxTokens == 0 && x.g.cfg.Budget > 0 {
		return nil, &llm.Error{Kind: llm.KindBadRequest, Status: http.StatusBadRequest, Code: "max_tokens_missing",
			Message: "n: with a budget to keep, a call for several answers must say how long they may be: set max_completion_tokens"}
	}
	if q.Schema != nil || x.call.Unread > 0 || x.call.Audio { // they count as input
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

// failure returns the error of a call that ended on this side.
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
		x.flight.Status = 0 // the provider's status is not the cause
	case errors.Is(cause, errAborted), errors.Is(cause, errStopping):
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

// stop answers for a model of which the session had all its answers: with a text that tells an agent to stop.
func (x *exchange) stop(rec *Call) {
	r := &llm.Response{
		Text:   fmt.Sprintf("The step limit of this session is reached: %d answers of this model were given. Stop now: call no more tools and end the task with what you have.", x.g.cfg.MaxSteps),
		Finish: llm.FinishStop, Provider: sessionOwn, Model: x.call.Request.Model, ID: fmt.Sprintf("stop-%d-%d", x.session.Episode, x.turn),
	}
	rec.Response = r
	meta := openai.Meta{ID: r.ID, Model: r.Model, Created: x.began.Unix(), Usage: x.call.Usage}
	h := http.Header{"Content-Type": {"application/json"}, "X-Parley-Stop": {"max_steps"}}
	x.flight = &relayFlight{Status: http.StatusOK, Answer: h}
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
	if x.patient != nil {
		x.patient.Stop()
	}
	if x.flight == nil {
		x.flight = &relayFlight{}
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
	rec.Label, rec.Digest, rec.At = string(x.rt.API), x.call.Turn(), time.Now()
	rec.Wire = Wire{Status: f.Status, Type: f.Answer.Get("Content-Type"), Body: f.Held, Cut: x.out.gone}
	if f.Begun() {
		rec.Wire.Type, rec.Wire.Body = f.Type, append(f.Sent, f.Held...)
	}
	x.session.Answered(rec)
	x.g.metrics.answered(x.rt.API, rec)
	x.span.End(rec.Response, e)
	began := time.Now()
	err := x.g.ledger.Keep(rec)
	x.g.metrics.recorded.Observe(time.Since(began).Seconds())
	if err == nil {
		x.g.dispatch.Budget().Recorded(rec.Cost())
		x.end = endRecorded
		if e != nil {
			x.end = endFailed
		}
	}
	x.send(err)
}

// send sends the rest of the answer, unless it could not be recorded.
func (x *exchange) send(unrecorded error) {
	f := x.flight
	switch {
	case x.out.gone:
	case unrecorded != nil && f.Begun():
		x.out.abort()
	case unrecorded != nil:
		x.fail(http.StatusInternalServerError, "record_failed", unrecorded.Error())
	case f.Begun():
		_, _ = x.out.Write(f.Held) // the client may be gone
	default:
		x.out.whole(f.Status, f.Held, f.Answer)
	}
}

// refuse sets the answer to an error: the provider's own words, if there are any.
func (x *exchange) refuse(e *llm.Error) {
	f := x.flight
	status := statusOf(e, x.rt.API)
	code := e.Code
	if code == "" {
		code = string(e.Kind)
	}
	switch {
	case f.Begun() && !f.Said:
		f.Held = x.rt.API.AppendErrorEvent(nil, status, code, e.Message)
	case f.Begun(), f.Status >= 400 && f.Status == e.Status:
	default:
		f.Status, f.Answer = status, http.Header{"Content-Type": {"application/json"}}
		f.Held = x.rt.API.AppendError(nil, status, code, e.Message)
		if status == http.StatusServiceUnavailable {
			f.Answer["Retry-After"] = []string{"1"}
		}
	}
}

// statusOf returns the HTTP status of an error.
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
