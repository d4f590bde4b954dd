// Package tally counts the calls of a run that workers play.
//
// It promises that calls, tokens, cost and latencies are those of the replies in the run file, whoever is killed. What a reply cost
// counts for the model that answered, also if others were tried before. What no reply tells is as workers report it every second and when
// they leave: other attempts, refusals, calls in flight. Of a worker that was killed, up to its last second of that is missing.
package tally

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"parley/internal/ask/dispatch"
	"parley/internal/ask/dispatch/budget"
	"parley/journal"
	"parley/llm"
)

// Report is what a worker says about its calls since it joined the run.
type Report struct {
	dispatch.Snapshot
	// Reserved is what is set aside for calls in flight.
	Reserved llm.Money `json:"reserved"`
	// Unsaved is how many answers have arrived and are not durable yet.
	Unsaved int64 `json:"unsaved,omitempty"`
	// Partial means that more may be in flight: acts, or calls of a worker that does not say.
	Partial bool `json:"partial,omitempty"`
	// Suspects is how many episodes wait until they are played with nothing beside them, because workers died at them.
	Suspects int `json:"suspects,omitempty"`
	// Waits is what calls wait for; hostile.
	Waits []dispatch.Wait `json:"waits,omitempty"`
}

// The limits of what is kept of reports.
const (
	maxWorkers = 4096
	maxModels  = 1000
	maxWaits   = 8
)

// Tally counts the calls of a run. The zero value is ready. It may be used from several goroutines.
type Tally struct {
	// Budget shows what all workers spent and set aside. Nil: nothing does.
	Budget *budget.Budget

	mu      sync.Mutex
	workers map[string]*worker              // by session
	left    dispatch.Snapshot               // of workers that are gone
	models  map[string]*dispatch.ModelStats // what is in the run file, by model
	spent   llm.Money                       // in all, earlier processes included
}

// worker is what a worker reported last.
type worker struct {
	Report
	gone bool // it says nothing any more; it may come back
}

// Reported notes what a worker reports.
func (t *Tally) Reported(session string, r Report) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(r.Models) > maxModels {
		return // not one of ours
	}
	if t.workers == nil {
		t.workers = map[string]*worker{}
	}
	switch before := t.workers[session]; {
	case before != nil:
		r.Partial = r.Partial || before.Partial // an older report may come later
	case len(t.workers) >= maxWorkers && !t.forget():
		return
	}
	t.workers[session] = &worker{Report: r}
	t.show()
}

// forget drops the workers that are gone, and keeps their sums. It returns false if there are none. The lock is held.
func (t *Tally) forget() (some bool) {
	for session, w := range t.workers {
		if w.gone {
			t.fold(session)
			some = true
		}
	}
	return some
}

// fold adds a worker to those that left. The lock is held.
func (t *Tally) fold(session string) {
	if w := t.workers[session]; w != nil {
		t.left = t.left.Plus(ended(w.Snapshot))
		delete(t.workers, session)
	}
}

// ended returns s of a worker that has nothing in flight any more.
func ended(s dispatch.Snapshot) dispatch.Snapshot {
	s.InFlight, s.Waiting = 0, 0
	return s
}

// Left notes that a worker has ended.
func (t *Tally) Left(session string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.fold(session)
	t.show()
}

// Lost notes that a worker says nothing any more.
func (t *Tally) Lost(session string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if w := t.workers[session]; w != nil {
		w.gone = true
		t.show()
	}
}

// InFlight returns how many calls a worker had in flight, or had answers of that it had not recorded, when it last reported, also if it is lost since. It returns false if that is not
// known.
func (t *Tally) InFlight(session string) (n int, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := t.workers[session]
	if w == nil || w.Partial {
		return 0, false
	}
	return int(max(0, w.Snapshot.InFlight) + max(0, w.Unsaved)), true
}

// Spent notes what is spent in all, earlier processes included.
func (t *Tally) Spent(spent llm.Money) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.spent = spent
	t.show()
}

// Replied notes that a reply is in the run file.
func (t *Tally) Replied(e *journal.Replied) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e.Request == nil {
		return // an act, or a bot's
	}
	asked, made := t.of(e.Request.Model), t.of(answerer(e)) // as a Dispatcher counts
	asked.Calls++
	made.Cost = made.Cost.Plus(e.Cost())
	switch r := e.Response; {
	case e.Error != nil:
		asked.Failed++
		made.Attempts += int64(max(0, e.Error.Metadata.Attempts))
		made.Usage = made.Usage.Plus(e.Error.Usage)
	case r != nil && r.Metadata.Cached:
		asked.Cached++
	case r != nil && r.Metadata.Coalesced:
		asked.Coalesced++
	case r != nil:
		made.Attempts += int64(max(0, r.Metadata.Attempts))
		made.Usage = made.Usage.Plus(r.Usage)
		made.Latency.Add(r.Metadata.Latency)
	}
}

// of returns what is in the run file of a model. The lock is held.
func (t *Tally) of(model string) *dispatch.ModelStats {
	if t.models == nil {
		t.models = map[string]*dispatch.ModelStats{}
	}
	if t.models[model] == nil {
		t.models[model] = &dispatch.ModelStats{}
	}
	return t.models[model]
}

// answerer returns the model whose answer or error e has: the one that was asked, or a fallback. A server may add a version to the name of
// a model. If several models of a provider are possible, it is the first.
func answerer(e *journal.Replied) string {
	var provider, name string
	switch {
	case e.Response != nil:
		provider, name = e.Response.Provider, e.Response.Model
	case e.Error != nil:
		provider, name = e.Error.Provider, e.Error.Model
	}
	found, fits := e.Request.Model, -1
	for _, model := range append([]string{e.Request.Model}, e.Request.Fallbacks...) {
		p, n := llm.SplitModel(model)
		if p != provider {
			continue
		}
		if !strings.HasPrefix(name, n) {
			n = ""
		}
		if len(n) > fits {
			found, fits = model, len(n)
		}
	}
	return found
}

// show makes the budget show the sums. The lock is held.
func (t *Tally) show() {
	if t.Budget == nil {
		return
	}
	var reserved llm.Money
	for _, w := range t.workers {
		if !w.gone {
			reserved = reserved.Plus(max(0, w.Reserved))
		}
	}
	t.Budget.Mirror(t.spent, reserved)
}

// Stats returns the sums over all workers.
func (t *Tally) Stats() dispatch.Snapshot {
	t.mu.Lock()
	defer t.mu.Unlock()
	sum := t.left.Plus(dispatch.Snapshot{}) // a copy
	for _, w := range t.workers {
		s := w.Snapshot
		if w.gone {
			s = ended(s)
		}
		sum = sum.Plus(s)
	}
	for name, m := range sum.Models {
		m.Calls, m.Failed, m.Cached, m.Coalesced, m.Usage, m.Cost, m.Uncertain = 0, 0, 0, 0, llm.Usage{}, 0, 0 // replies tell it
		sum.Models[name] = m
	}
	return sum.Plus(dispatch.Snapshot{Models: t.recorded(sum)})
}

// recorded returns what is in the run file, but for attempts that are reported. A reply has the attempts at all its models, so only the sums can be
// compared; a killed worker may not have reported all. The lock is held.
func (t *Tally) recorded(reported dispatch.Snapshot) map[string]dispatch.ModelStats {
	missing, models := -reported.Attempts, make(map[string]dispatch.ModelStats, len(t.models))
	for _, m := range t.models {
		missing += m.Attempts
	}
	for _, name := range slices.Sorted(maps.Keys(t.models)) {
		m := *t.models[name]
		m.Attempts = max(0, min(missing, m.Attempts-reported.Models[name].Attempts))
		missing -= m.Attempts
		models[name] = m
	}
	return models
}

// Waits lists what the calls of workers wait for; hostile. Each is listed once: calls that wait for money are summed by model.
func (t *Tally) Waits() (all []dispatch.Wait) {
	t.mu.Lock()
	defer t.mu.Unlock()
	short, says, count, suspects := map[string]budget.Shortage{}, map[string]string{}, map[string]int{}, 0
	for _, session := range slices.Sorted(maps.Keys(t.workers)) {
		w := t.workers[session]
		if !w.gone {
			suspects = llm.AddTokens(suspects, max(0, w.Suspects))
		}
		for _, wait := range w.Waits[:min(len(w.Waits), maxWaits)] {
			switch m := wait.Money; {
			case w.gone || m != nil && m.Calls <= 0:
			case m != nil:
				s := short[m.Model]
				if s.Calls == 0 || m.Amount > s.Amount {
					s.Model, s.Amount, s.Why = m.Model, m.Amount, m.Why
				}
				s.Calls = llm.AddTokens(s.Calls, m.Calls)
				short[m.Model] = s
			default:
				count[wait.About]++
				says[wait.About] = cmp.Or(says[wait.About], wait.Says)
			}
		}
	}
	all = WaitOfSuspects(suspects)
	for _, about := range slices.Sorted(maps.Keys(says)) {
		text := says[about]
		if n := count[about]; n > 1 {
			text = fmt.Sprintf("%s (%d workers)", text, n)
		}
		all = append(all, dispatch.Wait{About: about, Says: text})
	}
	for _, model := range slices.Sorted(maps.Keys(short)) {
		s := short[model]
		all = append(all, dispatch.Wait{Money: &s})
	}
	return all[:min(len(all), maxWaits)]
}

// WaitOfSuspects says that so many episodes wait because workers died at them. It returns nothing for none.
func WaitOfSuspects(n int) []dispatch.Wait {
	if n <= 0 {
		return nil
	}
	return []dispatch.Wait{{About: "suspects", Says: fmt.Sprintf("workers died: %d episodes wait to be played with nothing beside them", n)}}
}

// Waiting returns "workers" while there is none.
func (t *Tally) Waiting() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, w := range t.workers {
		if !w.gone {
			return ""
		}
	}
	return "workers"
}
