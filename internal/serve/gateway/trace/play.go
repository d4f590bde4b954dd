package trace

import (
	"sync"
	"time"

	"parley/journal"
	"parley/llm"
)

// Play is the trace of a run, or of many questions: a span for all of it, one for each episode that
// ends, and one for each call. A nil Play makes none. It may be used from several goroutines.
type Play struct {
	tracer *Tracer
	all    *Span

	mu       sync.Mutex
	episodes map[int]*Span // that have begun
}

// Play begins a trace. id is that of the run, or empty.
func (t *Tracer) Play(name, id string) *Play {
	if t == nil {
		return nil
	}
	p := &Play{tracer: t, episodes: map[int]*Span{}}
	p.all = p.span(name, nil)
	p.all.internal = true
	identify(p.all.parent.trace[:])
	if !t.settings.sampler.samples(p.all.parent, false) {
		return nil
	}
	if id != "" {
		p.all.attributes = []message{textOf(runID, id)}
	}
	return p
}

// span begins a span below another.
func (p *Play) span(name string, below *Span) *Span {
	s := &Span{tracer: p.tracer, name: name, began: time.Now(), ours: true}
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
	at := []message{intOf(episodeNumber, r.Episode), textOf(seatName, r.Seat), textOf(agentName, r.Agent), textOf(callLabel, r.Label)}
	p.call(p.episode(r.Episode), r.Request, r.Response, r.Error, r.At, at)
}

// Asked adds a question that belongs to no episode.
func (p *Play) Asked(req *llm.Request, r llm.Result) {
	if p != nil {
		p.call(p.all, req, r.Response, llm.AsError(r.Err), time.Now(), nil)
	}
}

func (p *Play) call(below *Span, req *llm.Request, resp *llm.Response, e *llm.Error, at time.Time, more []message) {
	provider, model := llm.SplitModel(req.Model)
	s := p.span("chat "+model, below)
	s.began = at
	if resp != nil {
		s.began = at.Add(-max(0, resp.Metadata.Latency))
	}
	named := *req
	named.Model = model
	s.attributes = append(requested("chat", provider, req.Session, &named), more...)
	s.endAt(at, resp, e)
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.began.Before(below.began) {
		below.began = s.began
	}
}

// Ended ends the span of an episode.
func (p *Play) Ended(e *journal.Ended) {
	if p == nil {
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
	if p != nil {
		p.all.attributes = append(p.all.attributes, textOf(runState, state))
		p.all.endAt(time.Now(), nil, nil)
	}
}
