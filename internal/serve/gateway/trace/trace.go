// Package trace sends spans of calls to an OpenTelemetry collector, following the GenAI conventions.
//
// It promises that a nil Tracer and a nil Span do nothing; that a call never waits for the collector; and that
// spans contain no text of requests or answers.
//
// It is not for metrics.
package trace

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"time"

	"parley/internal/provider"
	"parley/internal/serve/gateway/format"
	"parley/llm"
)

const (
	queueSpans = 2048            // how many spans wait for the collector; more are lost
	batchSpans = 512             // how many spans are sent at once
	interval   = 5 * time.Second // the longest time that a span waits for others
)

// Tracer makes spans and sends them. A nil Tracer makes none.
type Tracer struct {
	settings settings
	queue    chan message
	closing  chan struct{}
	cancel   context.CancelCauseFunc
	ended    chan struct{}
	sent     outcome // of the sender alone, until ended is closed
}

// Open returns a Tracer that sends the spans of a service with OTLP over HTTP, as the usual environment variables say
// (such as OTEL_EXPORTER_OTLP_ENDPOINT). It opens no connection. Close it.
func Open(ctx context.Context, env func(name string) (value string, ok bool), service, version string) (*Tracer, error) {
	set, err := settingsOf(env, service, version)
	if err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	t := &Tracer{settings: set, queue: make(chan message, queueSpans), closing: make(chan struct{}), cancel: cancel, ended: make(chan struct{})}
	go t.send(ctx)
	return t, nil
}

// Close sends the remaining spans, as long as ctx allows. Its error says how many were lost since Open, and why.
// It is called once.
func (t *Tracer) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	close(t.closing)
	stop := context.AfterFunc(ctx, func() { t.cancel(context.Cause(ctx)) })
	<-t.ended
	stop()
	t.cancel(nil)
	return t.sent.error()
}

// Span is the span of one call. It may be nil.
type Span struct {
	tracer     *Tracer
	name       string
	id         [8]byte
	parent     parent
	began      time.Time
	attributes []message
	ours       bool // its parent, if it has one, is of this process
	internal   bool // nothing is asked
}

// Start begins the span of a call, as a child of the one in the client's header.
func (t *Tracer) Start(h http.Header, api format.API, p provider.Provider, session string, c *format.Call) *Span {
	if t == nil {
		return nil
	}
	from, remote := parentOf(h)
	if !remote {
		identify(from.trace[:])
	}
	if !t.settings.sampler.samples(from, remote) {
		return nil
	}
	operation := operationOf(api)
	s := &Span{
		tracer: t, name: operation + " " + c.Request.Model, parent: from, began: time.Now(),
		attributes: asked(operation, p, session, c),
	}
	identify(s.id[:])
	return s
}

// identify fills in a new identity. All zeros is none.
func identify(id []byte) {
	_, _ = rand.Read(id) // it never fails
	id[len(id)-1] |= 1
}

// End ends the span with the result of the call.
func (s *Span) End(r *llm.Response, e *llm.Error) {
	if s == nil {
		return
	}
	s.endAt(time.Now(), r, e)
}

// endAt ends the span at a time.
func (s *Span) endAt(at time.Time, r *llm.Response, e *llm.Error) {
	var status message
	switch {
	case e != nil:
		s.attributes = append(s.attributes, textOf(errorType, string(e.Kind)))
		status = message(nil).text(2, string(e.Kind)).number(3, 2)
	case r != nil:
		s.attributes = append(s.attributes, answered(r)...)
	}
	s.tracer.offer(s.message(at, status))
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
		if !s.ours {
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
