package dispatch

import (
	"fmt"
	"time"

	"parley/internal/ask/dispatch/budget"
	"parley/llm"
)

// Wait says what calls wait for: an outage, a refusal, or money.
type Wait struct {
	// About is the part of an outage or a refusal that is equal in all processes: how long and how many differ.
	About string `json:"about,omitempty"`
	// Says describes an outage or a refusal; hostile.
	Says string `json:"says,omitempty"`
	// Money is the room in the budget that calls wait for; nil: they wait for something else. A run with a small budget
	// always does: it is no failure.
	Money *budget.Shortage `json:"money,omitempty"`
}

// Text describes the wait; hostile: part of it is what a server wrote.
func (w Wait) Text() string {
	m := w.Money
	if m == nil {
		return w.Says
	}
	text := fmt.Sprintf("%s for room in the budget: %v is set aside for a call of %s", callsWait(int64(m.Calls)), m.Amount, m.Model)
	if m.Why != "" {
		text = fmt.Sprintf("%s for room in the budget: %s sets aside %v for a call of %s", callsWait(int64(m.Calls)), m.Why, m.Amount, m.Model)
	}
	return text
}

func callsWait(n int64) string {
	if n > 1 {
		return fmt.Sprintf("%d calls wait", n)
	}
	return "1 call waits"
}

// Waits lists what calls wait for: providers that cannot be reached, those that refuse calls for
// now, and room in the budget.
func (d *Dispatcher) Waits(now time.Time) (all []Wait) {
	reported := map[string]bool{}
	for _, o := range d.Unreachable() {
		about := o.Provider + " is unreachable"
		if o.Refuses {
			about = o.Provider + " refuses"
		}
		all = append(all, Wait{About: about, Says: o.Text(now)})
		reported[o.Provider] = true
	}
	for _, r := range d.Stats().refusals(now, d.retry.rule.Deadline) {
		if provider, _ := llm.SplitModel(r.Model); !reported[provider] {
			all = append(all, Wait{About: r.Model + " is " + string(r.Kind), Says: r.Text(now)})
		}
	}
	if s := d.budget.Shortage(); s.Calls > 0 {
		all = append(all, Wait{Money: &s})
	}
	return all
}

// WaitTexts returns the texts of waits; hostile.
func WaitTexts(waits []Wait) (texts []string) {
	for _, w := range waits {
		texts = append(texts, w.Text())
	}
	return texts
}

// refusal says that a provider refuses the calls to a model for now: it is overloaded, or a rate
// limit is used up. The calls are retried.
type refusal struct {
	Model    string // written provider/model
	Kind     llm.Kind
	Why      string // text of the last refusal; hostile
	Since    time.Time
	Calls    int64         // that were refused and are retried
	Deadline time.Duration // of each call; 0 or less: none
}

// reportRefusalAfter is how long no call must have been answered before a refusal is reported. Shorter
// ones are normal.
const reportRefusalAfter = 5 * time.Second

// Text describes the refusal as of now.
func (r refusal) Text(now time.Time) string {
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
	t.LastError[e.Kind] = errorText(e)
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
func (s Snapshot) refusals(now time.Time, deadline time.Duration) (all []refusal) {
	for _, name := range s.Names() {
		m := s.Models[name]
		if m.refusedCalls > 0 && !m.refusedSince.IsZero() && now.Sub(m.refusedSince) >= reportRefusalAfter {
			all = append(all, refusal{
				Model: name, Kind: m.refusal, Why: m.LastError[m.refusal], Since: m.refusedSince,
				Calls: m.refusedCalls, Deadline: deadline,
			})
		}
	}
	return all
}
