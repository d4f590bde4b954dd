package bulk

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"parley/internal/ask/dispatch"
	"parley/internal/ask/dispatch/budget"
	"parley/internal/cli/terminal"
	"parley/internal/run/results"
	"parley/llm"
)

// Tally counts the results of requests. It is safe for use by several goroutines.
type Tally struct {
	mu      sync.Mutex
	n       Counts
	reasons results.Reasons // why requests failed
}

// Counts is a snapshot of a Tally.
type Counts struct {
	Answered int       `json:"answered"`
	Failed   int       `json:"failed"`   // asked and not answered
	Rejected int       `json:"rejected"` // lines that are not requests
	Kept     int       `json:"kept"`     // answered by an earlier run
	Cached   int       `json:"cached"`   // of the answered: from the cache, or from an equal request in flight
	Usage    llm.Usage `json:"usage"`
	Cost     llm.Money `json:"-"`
	Unnamed  int       `json:"-"` // of the answered: those that named no model
	Unasked  int       `json:"-"` // of an input that was read to its end: the run was stopped before them
	// Rejections says what is wrong with the first rejected lines.
	Rejections []string `json:"-"`
}

// maxRejections is how many rejected lines are shown.
const maxRejections = 3

// Commonest returns the most common reason why requests failed, and how many did for it; hostile.
func (t *Tally) Commonest() (why string, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.reasons.Commonest()
}

func (t *Tally) unasked() { t.add(func(n *Counts) { n.Unasked++ }) }

func (t *Tally) kept() { t.add(func(n *Counts) { n.Kept++ }) }

func (t *Tally) rejected(why error) {
	t.add(func(n *Counts) {
		if n.Rejected++; n.Rejected <= maxRejections {
			n.Rejections = append(n.Rejections, why.Error())
		}
	})
}

func (t *Tally) done(r llm.Result, unnamed bool) {
	t.add(func(n *Counts) {
		if r.Response == nil {
			n.Failed++
			if e := llm.AsError(r.Err); e != nil {
				t.reasons.Add(e.Error())
				n.Usage, n.Cost = n.Usage.Plus(e.Usage), n.Cost.Plus(e.Metadata.Cost)
			}
			return
		}
		n.Answered++
		if unnamed {
			n.Unnamed++
		}
		n.Cost = n.Cost.Plus(r.Response.Metadata.Cost)
		if r.Response.Metadata.Cached || r.Response.Metadata.Coalesced {
			n.Cached++
			return
		}
		n.Usage = n.Usage.Plus(r.Response.Usage)
	})
}

func (t *Tally) add(f func(*Counts)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f(&t.n)
}

// Now returns the counts up to now.
func (t *Tally) Now() Counts {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.n
}

// Progress shows the progress of a run.
type Progress struct {
	Out   *terminal.Stream
	Tally *Tally
	Stats func() dispatch.Snapshot
	Share func() float64                      // fraction of the input that was read; negative if not known
	Waits func(now time.Time) []dispatch.Wait // what calls wait for; hostile
	Money func() budget.Sums
	Began time.Time

	// The values of the last update, to compute the speed.
	last   time.Time
	counts Counts
}

// Show starts to show the progress. The caller must call end, which waits for the goroutine.
func (p *Progress) Show() (end func()) {
	p.Began = time.Now()
	p.last = p.Began
	return terminal.ShowProgress(p.Out, p.line)
}

// line describes the current state: what is done, the cost, what is in flight, the speed.
func (p *Progress) line(now time.Time) []string {
	n, l := p.Tally.Now(), p.Stats()
	trouble, money := terminal.Reasons(p.Waits, now)
	parts := append(trouble, terminal.Number(n.Answered+n.Kept)+" answered")
	if share := p.Share(); share >= 0 {
		parts = append(parts, fmt.Sprintf("%.0f%% of the input", 100*share))
	}
	if bad := n.Failed + n.Rejected; bad > 0 {
		parts = append(parts, terminal.Number(bad)+" failed")
	}
	parts = append(append(parts, terminal.MoneyText(p.Money(), l)), money...)
	parts = append(parts, terminal.Number(int(l.InFlight))+" in flight")
	if s := now.Sub(p.last).Seconds(); s > 0 {
		requests, tokens := float64(n.Answered-p.counts.Answered), float64(n.Usage.Total()-p.counts.Usage.Total())
		parts = append(parts, terminal.Speed(requests/s)+" requests/s", terminal.Speed(tokens/s)+" tokens/s")
	}
	if now.Sub(p.last) >= time.Second {
		p.last, p.counts = now, n
	}
	return append(parts, terminal.Queue(l)...)
}

// Summary is the result of a file of requests.
type Summary struct {
	Counts
	// Cost leaves out the models in Unpriced. It is nil if only those were asked.
	Cost     *llm.Money `json:"cost_usd"`
	Unpriced []string   `json:"unpriced"`
}

// NewSummary returns the summary of all requests.
func NewSummary(n Counts, s dispatch.Snapshot) Summary {
	sum := Summary{Counts: n, Unpriced: []string{}}
	for _, name := range s.Names() {
		if s.Models[name].Unpriced > 0 {
			sum.Unpriced = append(sum.Unpriced, name)
		}
	}
	if s.Unpriced == 0 || s.Unpriced < s.Attempts || n.Cost > 0 {
		sum.Cost = &n.Cost
	}
	return sum
}

// Line returns the last line of a run's output.
func (n Summary) Line(money budget.Sums, took time.Duration, s dispatch.Snapshot) string {
	parts, lines := []string{terminal.Number(n.Answered) + " answered"}, "lines rejected"
	if n.Rejected == 1 {
		lines = "line rejected"
	}
	for _, p := range []struct {
		n    int
		what string
	}{{n.Cached, "of them from the cache"}, {n.Kept, "kept from before"}, {n.Failed, "failed"}, {n.Rejected, lines}} {
		if p.n > 0 {
			parts = append(parts, terminal.Number(p.n)+" "+p.what)
		}
	}
	text := fmt.Sprintf("%s; %s tokens in, %s out; %s; %s", strings.Join(parts, ", "),
		terminal.Number(n.Usage.Input), terminal.Number(n.Usage.Output), terminal.MoneyText(money, s), took.Round(10*time.Millisecond))
	if s.Saved > 0 {
		text += "; prompt caches saved " + s.Saved.String()
	}
	if note := terminal.UnpricedNote(n.Unpriced); note != "" {
		text += "\n" + note
	}
	return text
}
