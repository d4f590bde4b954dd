package cli

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"parley/internal/dispatch"
	"parley/llm"
)

// tally counts what became of the requests. It is safe for use by several goroutines.
type tally struct {
	mu sync.Mutex
	n  counts
}

// counts is a tally at one moment.
type counts struct {
	Answered int       `json:"answered"`
	Failed   int       `json:"failed"`   // asked, and not answered
	Rejected int       `json:"rejected"` // lines that are no request
	Kept     int       `json:"kept"`     // answered by an earlier run
	Cached   int       `json:"cached"`   // of the answered: by the cache, or by an equal request in flight
	Usage    llm.Usage `json:"usage"`
	Cost     llm.Money `json:"-"`
}

func (t *tally) rejected() { t.add(func(n *counts) { n.Rejected++ }) }
func (t *tally) kept()     { t.add(func(n *counts) { n.Kept++ }) }

func (t *tally) done(r llm.Result) {
	t.add(func(n *counts) {
		if r.Response == nil {
			n.Failed++
			if e := llm.AsError(r.Err); e != nil {
				n.Usage, n.Cost = n.Usage.Plus(e.Usage), n.Cost.Plus(e.Metadata.Cost)
			}
			return
		}
		n.Answered++
		n.Cost = n.Cost.Plus(r.Response.Metadata.Cost)
		if r.Response.Metadata.Cached || r.Response.Metadata.Coalesced {
			n.Cached++
			return
		}
		n.Usage = n.Usage.Plus(r.Response.Usage)
	})
}

func (t *tally) add(f func(*counts)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f(&t.n)
}

func (t *tally) now() counts {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.n
}

// progress shows how a run goes.
type progress struct {
	out    *stream
	tally  *tally
	stats  func() dispatch.Snapshot
	share  func() float64               // of the input that was read; negative if not known
	waits  func(now time.Time) []string // what calls wait for; hostile
	budget llm.Money
	began  time.Time

	// The last look, for the speed since then.
	last   time.Time
	counts counts
}

// show starts to show the progress. The caller must call end, which waits.
func (p *progress) show() (end func()) {
	p.began = time.Now()
	p.last = p.began
	return ticking(p.out, p.line)
}

// line describes the moment: what is done, what it cost, what is in flight, how fast.
func (p *progress) line(now time.Time) []string {
	n, l := p.tally.now(), p.stats()
	parts := append(reasons(p.waits, now), number(n.Answered+n.Kept)+" answered")
	if share := p.share(); share >= 0 {
		parts = append(parts, fmt.Sprintf("%.0f%% of the input", 100*share))
	}
	if bad := n.Failed + n.Rejected; bad > 0 {
		parts = append(parts, number(bad)+" failed")
	}
	parts = append(parts, cost(n.Cost, p.budget, l), number(int(l.InFlight))+" in flight")
	if s := now.Sub(p.last).Seconds(); s > 0 {
		parts = append(parts,
			speed(float64(n.Answered-p.counts.Answered)/s)+" requests/s",
			speed(float64(n.Usage.Total()-p.counts.Usage.Total())/s)+" tokens/s")
	}
	if now.Sub(p.last) >= time.Second {
		p.last, p.counts = now, n
	}
	if l.Waiting > 0 {
		parts = append(parts, number(int(l.Waiting))+" waiting")
	}
	if l.RateLimited > 0 {
		parts = append(parts, number(int(l.RateLimited))+" rate-limited")
	}
	return parts
}

// askSummary is what came of a file of requests.
type askSummary struct {
	counts
	// Cost leaves out the models of Unpriced. It is nil where nothing else was asked.
	Cost     *llm.Money `json:"cost_usd"`
	Unpriced []string   `json:"unpriced"`
}

func newAskSummary(n counts, s dispatch.Snapshot) askSummary {
	sum := askSummary{counts: n, Unpriced: []string{}}
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

// line is the closing line of a run.
func (n askSummary) line(budget llm.Money, took time.Duration, s dispatch.Snapshot) string {
	parts := []string{number(n.Answered) + " answered"}
	for _, p := range []struct {
		n    int
		what string
	}{{n.Cached, "of them from the cache"}, {n.Kept, "kept from before"}, {n.Failed, "failed"}, {n.Rejected, "lines rejected"}} {
		if p.n > 0 {
			parts = append(parts, number(p.n)+" "+p.what)
		}
	}
	text := fmt.Sprintf("%s; %s tokens in, %s out; %s; %s", strings.Join(parts, ", "),
		number(n.Usage.Input), number(n.Usage.Output), cost(n.counts.Cost, budget, s), took.Round(10*time.Millisecond))
	return text + unpricedNote(n.Unpriced)
}
