package telemetry

import (
	"crypto/rand"
	"encoding/hex"
	"net/http"
	"strings"
	"time"

	"parley/internal/ask/provider"
	"parley/internal/serve/gateway/format"
	"parley/llm"
)

// Span is the span of one call, which is also measured. It may be nil.
type Span struct {
	exporter   *Exporter
	sampled    bool // it is sent
	of         operation
	name       string
	id         [8]byte
	parent     parent
	began      time.Time
	attributes []message
	ours       bool // its parent, if it has one, is of this process
	internal   bool // nothing is asked
}

// Start begins the span of a call, as a child of the one in the client's header.
func (x *Exporter) Start(h http.Header, api format.API, p *provider.Provider, session string, c *format.Call) *Span {
	if x == nil {
		return nil
	}
	from, remote := parentOf(h)
	if !remote {
		identify(from.trace[:])
	}
	s := &Span{exporter: x, of: operation{name: operationOf(api), provider: vendor(p.Name), model: c.Request.Model}, parent: from, began: time.Now()}
	if s.sampled = x.samples(from, remote); s.sampled {
		s.name, s.attributes = s.of.name+" "+s.of.model, asked(s.of, p, session, c)
		identify(s.id[:])
	}
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
	at := time.Now()
	s.exporter.measure(s.of, at.Sub(s.began), r, e)
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
		s.attributes = append(s.attributes, answered(r)...)
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
