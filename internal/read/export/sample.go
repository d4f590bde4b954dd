package export

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"parley/internal/run/runfile"
	"parley/journal"
	"parley/llm"
)

// sample is an EvalSample: an episode.
type sample struct {
	ID        int                     `json:"id"`
	Epoch     int                     `json:"epoch"`
	Input     []inspectMessage        `json:"input"`
	Target    string                  `json:"target"`
	Messages  []inspectMessage        `json:"messages"`
	Output    output                  `json:"output"`
	Scores    map[string]inspectScore `json:"scores"`
	Metadata  map[string]any          `json:"metadata"`
	Store     map[string]any          `json:"store"`
	Events    []event                 `json:"events"`
	Usage     map[string]*usage       `json:"model_usage"`
	Started   string                  `json:"started_at,omitempty"`
	Completed string                  `json:"completed_at,omitempty"`
	Time      float64                 `json:"total_time"`
	UUID      string                  `json:"uuid"`
	Error     *evalError              `json:"error,omitempty"`

	done    bool // the episode has ended
	attempt int
	order   []string // of scores
	first   time.Time
	last    time.Time
	now     time.Time
	shown   map[string]bool // what is in Messages, by seat, role and text
}

// summary is an EvalSampleSummary.
type summary struct {
	ID        int                     `json:"id"`
	Epoch     int                     `json:"epoch"`
	Input     string                  `json:"input"`
	Target    string                  `json:"target"`
	Metadata  map[string]any          `json:"metadata"`
	Scores    map[string]inspectScore `json:"scores"`
	Usage     map[string]*usage       `json:"model_usage"`
	Started   string                  `json:"started_at,omitempty"`
	Completed string                  `json:"completed_at,omitempty"`
	Time      float64                 `json:"total_time"`
	UUID      string                  `json:"uuid"`
	Error     string                  `json:"error,omitempty"`
	Done      bool                    `json:"completed"`
	Messages  int                     `json:"message_count"`
}

// inspectScore is a Score. A value that JSON has no number for is a text.
type inspectScore struct {
	Value    any            `json:"value"`
	Metadata map[string]any `json:"metadata,omitempty"`
}

// usage is a ModelUsage. Input does not include tokens that are read from or written to a cache.
type usage struct {
	Input     int     `json:"input_tokens"`
	Output    int     `json:"output_tokens"`
	Total     int     `json:"total_tokens"`
	Write     int     `json:"input_tokens_cache_write"`
	Read      int     `json:"input_tokens_cache_read"`
	Reasoning int     `json:"reasoning_tokens"`
	Cost      float64 `json:"total_cost"`
}

func usageOf(u llm.Usage, cost llm.Money) *usage {
	write := u.CacheWrite + u.CacheWriteLong
	return &usage{Input: max(0, u.Input-u.Cached-write), Output: u.Output, Total: u.Input + u.Output, Write: write, Read: u.Cached, Reasoning: u.Reasoning, Cost: cost.Dollars()}
}

func (u *usage) plus(v *usage) {
	u.Input, u.Output, u.Total, u.Write = u.Input+v.Input, u.Output+v.Output, u.Total+v.Total, u.Write+v.Write
	u.Read, u.Reasoning, u.Cost = u.Read+v.Read, u.Reasoning+v.Reasoning, u.Cost+v.Cost
}

// maxParams is the size of the largest params that a sample includes.
const maxParams = 16 << 10

// newSample returns the sample of an episode without its calls. One that has not ended has no scores.
func newSample(b *journal.Begun, e *runfile.Listed) *sample {
	end := e.Ended
	if end == nil {
		end = &journal.Ended{Episode: e.Episode, Attempt: e.Attempt}
	}
	s := &sample{
		ID: e.Episode, Epoch: 1, Input: []inspectMessage{}, Messages: []inspectMessage{}, Scores: map[string]inspectScore{}, Events: []event{}, Usage: map[string]*usage{},
		Metadata: map[string]any{"state": e.State(), "deal": e.Spec.Deal, "stage": e.Stage, "attempt": end.Attempt, "lineup": e.Spec.Lineup},
		Store:    map[string]any{}, UUID: fmt.Sprintf("%s-%d", b.Run, e.Episode),
		done: e.Ended != nil, attempt: end.Attempt, shown: map[string]bool{}, last: end.At, now: b.At,
	}
	if e.Spec.Cell != "" {
		s.Metadata["cell"] = e.Spec.Cell
	}
	if n := len(e.Spec.Params); n > 0 && n <= maxParams {
		s.Metadata["params"] = e.Spec.Params
	}
	o := end.Outcome
	for _, sc := range o.Scores {
		name, meta := sc.Name, map[string]any(nil)
		if sc.Seat != "" {
			name, meta = sc.Seat+"."+sc.Name, map[string]any{"seat": sc.Seat, "agent": e.Spec.Lineup[sc.Seat]}
		}
		if _, twice := s.Scores[name]; !twice {
			s.order = append(s.order, name)
		}
		s.Scores[name] = inspectScore{Value: number(sc.Value), Metadata: meta}
	}
	if data, ok := o.Data.(json.RawMessage); ok && len(data) > 0 {
		s.Store["outcome"] = data
	}
	if o.Failed != "" {
		s.Error = &evalError{Message: o.Failed, Traceback: end.Stack}
	}
	return s
}

// number returns a value, as a text if JSON has no number for it.
func number(x float64) any {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return fmt.Sprint(x)
	}
	return x
}

// add adds an entry of the last attempt.
func (s *sample) add(entry journal.Entry) {
	switch e := entry.(type) {
	case *journal.Turned:
		if e.Attempt == s.attempt {
			for _, n := range e.Notes {
				s.inform(map[string]any{"note": n.Kind, "seat": n.Seat, "data": n.Data}, s.now)
			}
		}
	case *journal.Replied:
		if e.Attempt == s.attempt {
			s.reply(e)
		}
	}
}

func (s *sample) reply(e *journal.Replied) {
	if !e.At.IsZero() {
		began := e.At.Add(-metadata(e).Latency - metadata(e).Waited)
		if s.first.IsZero() || began.Before(s.first) {
			s.first = began
		}
		s.now = e.At
		if !s.done && e.At.After(s.last) {
			s.last = e.At
		}
	}
	switch {
	case e.Request != nil:
		s.ask(e)
	case e.Act != nil:
		data := map[string]any{"act": e.Act.Name, "seat": e.Seat, "body": e.Act.Body}
		if e.Response != nil && len(e.Response.JSON) > 0 {
			data["result"] = e.Response.JSON
		}
		if e.Error != nil {
			data["error"] = e.Error.Error()
		}
		s.inform(data, e.At)
	case e.Response != nil:
		s.inform(map[string]any{"bot": e.Agent, "seat": e.Seat, "label": e.Label, "text": e.Response.Text}, e.At)
	}
}

func metadata(e *journal.Replied) llm.Metadata {
	switch {
	case e.Response != nil:
		return e.Response.Metadata
	case e.Error != nil:
		return e.Error.Metadata
	default:
		return llm.Metadata{}
	}
}

// close completes the sample.
func (s *sample) close() {
	if s.Output.Choices == nil {
		s.Output.Choices = []choice{}
	}
	s.Started, s.Completed = stamp(s.first), stamp(s.last)
	if !s.first.IsZero() && s.last.After(s.first) {
		s.Time = s.last.Sub(s.first).Seconds()
	}
}

func (s *sample) summary() summary {
	sum := summary{
		ID: s.ID, Epoch: s.Epoch, Metadata: map[string]any{}, Scores: s.Scores, Usage: s.Usage,
		Started: s.Started, Completed: s.Completed, Time: s.Time, UUID: s.UUID, Done: s.done, Messages: len(s.Messages),
	}
	for _, key := range []string{"cell", "deal", "lineup", "state"} {
		if v, ok := s.Metadata[key]; ok {
			sum.Metadata[key] = v
		}
	}
	if n := len(s.Input); n > 0 {
		sum.Input = brief(s.Input[n-1].text())
	}
	if s.Error != nil {
		sum.Error = cmp.Or(s.Error.Message, "failed")
	}
	return sum
}

// brief returns the beginning of a text.
func brief(text string) string {
	const limit = 200
	if runes := []rune(text); len(runes) > limit {
		return string(runes[:limit-1]) + "…"
	}
	return text
}
