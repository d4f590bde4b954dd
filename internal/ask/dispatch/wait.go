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

// Text describes the wait; hostile.
func (w Wait) Text() string {
	m := w.Money
	if m == nil {
		return w.Says
	}
	text := fmt.Sprintf("%s for money: the budget sets aside %v for a call of %s", callsWait(int64(m.Calls)), m.Amount, m.Model)
	if m.Exceeds {
		text += ", whose server is not known to stop at max_tokens"
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
	said := map[string]bool{}
	for _, o := range d.Unreachable() {
		about := o.Provider + " is unreachable"
		if o.Refuses {
			about = o.Provider + " refuses"
		}
		all = append(all, Wait{About: about, Says: o.Text(now)})
		said[o.Provider] = true
	}
	for _, r := range d.Stats().refusals(now, d.retry.rule.Deadline) {
		if provider, _ := llm.SplitModel(r.Model); !said[provider] {
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
