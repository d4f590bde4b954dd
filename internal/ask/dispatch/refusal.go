package dispatch

import (
	"fmt"
	"time"

	"parley/llm"
)

// Refusal says that a provider refuses the calls to a model for now: it is overloaded, or a rate
// limit is used up. The calls are retried.
type Refusal struct {
	Model    string // written provider/model
	Kind     llm.Kind
	Why      string // text of the last refusal; hostile
	Since    time.Time
	Calls    int64         // that were refused and are retried
	Deadline time.Duration // of each call; 0 or less: none
}

// refusedTime is how long no call must have been answered before a Refusal is reported. Shorter
// ones are normal.
const refusedTime = 5 * time.Second

// Text describes the refusal as of now.
func (r Refusal) Text(now time.Time) string {
	state := "overloaded"
	if r.Kind == llm.KindRateLimited {
		state = "rate-limited"
	}
	text := fmt.Sprintf("%s is %s for %v: %s; %s", r.Model, state, now.Sub(r.Since).Round(time.Second), r.Why, callsWait(r.Calls))
	if r.Deadline > 0 {
		text += fmt.Sprintf(", each retried for up to %v", r.Deadline)
	}
	return text
}

// refused reports whether a provider refused a call for now.
func refused(kind llm.Kind) bool { return kind == llm.KindRateLimited || kind == llm.KindOverloaded }

// failed counts a failed attempt.
func (t *ModelStats) failed(e *llm.Error) {
	t.Errors[e.Kind]++
	t.Said[e.Kind] = outageWhy(e)
	t.Usage = t.Usage.Plus(e.Usage)
	if !refused(e.Kind) {
		return
	}
	if t.refusedSince.IsZero() {
		t.refusedSince = time.Now()
	}
	t.refusal = e.Kind
}

// refusals lists the models that answered nothing for some time while calls were refused, by name.
func (s Snapshot) refusals(now time.Time, deadline time.Duration) (all []Refusal) {
	for _, name := range s.Names() {
		m := s.Models[name]
		if m.refusedCalls > 0 && !m.refusedSince.IsZero() && now.Sub(m.refusedSince) >= refusedTime {
			all = append(all, Refusal{
				Model: name, Kind: m.refusal, Why: m.Said[m.refusal], Since: m.refusedSince,
				Calls: m.refusedCalls, Deadline: deadline,
			})
		}
	}
	return all
}
