package telemetry

import (
	"sync"
	"time"

	"parley/journal"
	"parley/llm"
)

// Play is the trace of a run, or of questions: a span for all of it, one for each episode that ends,
// and one for each call, which is also measured. A nil Play does nothing. It may be used from several
// goroutines.
type Play struct {
	exporter *Exporter
	all      *Span // nil: there are no spans

	mu       sync.Mutex
	episodes map[int]*Span // that have begun
}

// Play begins a trace. id is that of the run, or empty.
func (x *Exporter) Play(name, id string) *Play {
	if x == nil {
		return nil
	}
	p := &Play{exporter: x, episodes: map[int]*Span{}}
	all := p.span(name, nil)
	all.internal = true
	identify(all.parent.trace[:])
	if x.samples(all.parent, false) {
		p.all = all
	}
	if id != "" {
		all.attributes = []message{textOf(runID, id)}
	}
	return p
}

// traced reports whether there are spans.
func (p *Play) traced() bool { return p != nil && p.all != nil }

// span begins a span below another.
func (p *Play) span(name string, below *Span) *Span {
	s := &Span{exporter: p.exporter, name: name, began: time.Now(), ours: true}
	identify(s.id[:])
	if below != nil {
		s.parent = parent{trace: below.parent.trace, span: below.id}
	}
	return s
}

// episode returns the span of an episode.
func (p *Play) episode(n int) *Span {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.episodes[n]
	if s == nil {
		s = p.span("episode", p.all)
		s.internal, s.attributes = true, []message{intOf(episodeNumber, n)}
		p.episodes[n] = s
	}
	return s
}

// Replied adds the call of an episode that a model has answered.
func (p *Play) Replied(r *journal.Replied) {
	if p == nil || r.Request == nil {
		return
	}
	of, took := p.measure(r.Request, r.Response, r.Error)
	if p.traced() {
		at := []message{intOf(episodeNumber, r.Episode), textOf(seatName, r.Seat), textOf(agentName, r.Agent), textOf(callLabel, r.Label)}
		p.call(p.episode(r.Episode), r.Request, of, r.At, took, r.Response, r.Error, at)
	}
}

// Asked adds a question that belongs to no episode.
func (p *Play) Asked(req *llm.Request, r llm.Result) {
	if p == nil {
		return
	}
	e := llm.AsError(r.Err)
	of, took := p.measure(req, r.Response, e)
	if p.traced() {
		p.call(p.all, req, of, time.Now(), took, r.Response, e, nil)
	}
}

// measure measures a call, and returns what it was and how long its last attempt took.
func (p *Play) measure(req *llm.Request, resp *llm.Response, e *llm.Error) (of operation, took time.Duration) {
	provider, model := llm.SplitModel(req.Model)
	of = operation{name: "chat", provider: vendor(provider), model: model}
	switch {
	case resp != nil:
		took = max(0, resp.Metadata.Latency)
	case e != nil:
		took = max(0, e.Metadata.Latency)
	}
	p.exporter.measure(of, took, resp, e)
	return of, took
}

// call sends the span of a call that ended at a time.
func (p *Play) call(below *Span, req *llm.Request, of operation, at time.Time, took time.Duration, resp *llm.Response, e *llm.Error, more []message) {
	s := p.span(of.name+" "+of.model, below)
	s.began = at.Add(-took)
	s.attributes = append(requested(of, req.Session, req), more...)
	s.endAt(at, resp, e)
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.began.Before(below.began) {
		below.began = s.began
	}
}

// Ended ends the span of an episode.
func (p *Play) Ended(e *journal.Ended) {
	if !p.traced() {
		return
	}
	s := p.episode(e.Episode)
	p.mu.Lock()
	delete(p.episodes, e.Episode)
	p.mu.Unlock()
	for _, one := range e.Outcome.Scores {
		if one.Seat == "" {
			s.attributes = append(s.attributes, floatOf(score+one.Name, one.Value))
		}
	}
	var failed *llm.Error
	if e.Outcome.Failed != "" {
		failed = &llm.Error{Kind: "failed"} // why is the text of a world
	}
	s.endAt(e.At, nil, failed)
}

// End ends the trace. Episodes that did not end have no span.
func (p *Play) End(state string) {
	if p.traced() {
		p.all.attributes = append(p.all.attributes, textOf(runState, state))
		p.all.endAt(time.Now(), nil, nil)
	}
}
