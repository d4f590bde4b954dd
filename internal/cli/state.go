package cli

import (
	"maps"
	"slices"
	"time"

	"parley/internal/ask/dispatch"
	"parley/internal/ask/dispatch/limiter"
	"parley/internal/cli/terminal"
	"parley/internal/run/control"
	"parley/llm"
)

// sample is what was counted at some moment. Rates are differences between two.
type sample struct {
	at       time.Time
	attempts int64
	tokens   int
	errors   int64
	spent    llm.Money
	charged  map[server]limiter.Units
}

// server identifies one of dispatch.Limit.
type server struct{ provider, address, models string }

func serverOf(l *dispatch.Limit) server { return server{l.Provider, l.Server, l.Models} }

// The times over which rates are measured: of calls, of what a server was asked for, and of money.
const (
	rateTime   = time.Second
	serverTime = 10 * time.Second
	burnTime   = time.Minute
)

// costs adds up what episodes cost.
type costs struct {
	episodes int
	sum      llm.Money
}

// add adds an episode that ended. What one cost that began in an earlier process is not known here.
func (c *costs) add(cost llm.Money, resumed bool) {
	if !resumed {
		c.episodes++
		c.sum = c.sum.Plus(cost)
	}
}

// State returns the current state of the run for those who watch it from outside. It is called once a second.
func (v *runView) State(now time.Time) control.LiveState {
	v.mu.Lock()
	defer v.mu.Unlock()
	st := v.Stats()
	steered, budget := v.steered()
	s := control.LiveState{
		At: now, Steered: steered, InFlight: st.InFlight, Waiting: st.Waiting, RateLimited: st.RateLimited,
		Spent: v.spent.Plus(st.Cost).Plus(st.Uncertain), Budget: budget, Left: v.timeLeft(now),
		Status: append(v.Says(), v.inside()...), Waits: terminal.Waits(v.Calls, now), Models: models(st),
	}
	s.Projected = v.projected(s.Spent)
	if why := v.waits(); why != "" {
		s.Waits = append(s.Waits, why)
	}
	if v.batches != nil {
		for _, b := range v.batches().Open {
			s.Batches = append(s.Batches, control.Batch{Provider: b.Provider, Model: b.Model, Began: b.Began, Requests: b.Lines, Answered: b.Answered + b.Failed, Trouble: terminal.Cut(b.Trouble, 300)})
		}
	}
	v.rates(&s, st)
	return s
}

// models returns what each model did.
func models(st dispatch.Snapshot) (out []control.Model) {
	for _, name := range slices.Sorted(maps.Keys(st.Models)) {
		m := st.Models[name]
		one := control.Model{
			Name: name, Calls: m.Calls, Failed: m.Failed, RateLimited: m.RateLimited, Input: m.Usage.Input, Output: m.Usage.Output, Cost: m.Cost,
			Median: m.Latency.Quantile(0.5), P95: m.Latency.Quantile(0.95), Errors: map[llm.Kind]control.LiveError{},
		}
		for kind, n := range m.Errors {
			one.Errors[kind] = control.LiveError{Attempts: n, Example: terminal.Cut(m.Said[kind], 300)}
		}
		out = append(out, one)
	}
	return out
}

// projected returns what all known episodes will cost if the others cost as much as those that ended; 0: unknown.
func (v *runView) projected(spent llm.Money) llm.Money {
	if v.ends.episodes == 0 || v.ends.sum == 0 {
		return 0
	}
	each, left := v.ends.sum.Dollars()/float64(v.ends.episodes), 0.0
	for n, m := range v.playing {
		if !v.resumed[n] {
			left -= m.cost.Dollars() // it is spent
		}
	}
	left += each * float64(v.episodes-v.ended)
	return spent.Plus(llm.Dollars(max(0, left)))
}

// rates fills in what the run does in a second or a minute, and keeps what it did for the next time.
func (v *runView) rates(s *control.LiveState, st dispatch.Snapshot) {
	now := sample{at: s.At, attempts: st.Attempts, tokens: st.Usage.Total(), spent: s.Spent, charged: map[server]limiter.Units{}}
	for _, n := range st.Errors {
		now.errors += n
	}
	limits := v.limits()
	for i := range limits {
		now.charged[serverOf(&limits[i])] = limits[i].Charged
	}
	v.past = slices.DeleteFunc(v.past, func(p sample) bool { return s.At.Sub(p.at) > burnTime+rateTime/2 })
	if before, d, ok := v.since(s.At, rateTime, nil); ok {
		s.CallsPerSecond = float64(now.attempts-before.attempts) / d
		s.TokensPerSecond = float64(now.tokens-before.tokens) / d
		s.ErrorsPerSecond = float64(now.errors-before.errors) / d
	}
	if before, d, ok := v.since(s.At, burnTime, nil); ok {
		s.Burn = llm.Dollars(max(0, now.spent.Minus(before.spent).Dollars()) * 60 / d)
	}
	for i := range limits {
		l := &limits[i]
		at := serverOf(l)
		before, d, ok := v.since(s.At, serverTime, &at)
		was := before.charged[at]
		rate := func(limit, charged, was float64) control.Rate {
			if !ok {
				return control.Rate{Limit: limit, Unknown: true}
			}
			return control.Rate{Now: max(0, charged-was) * 60 / d, Limit: limit}
		}
		s.Servers = append(s.Servers, control.Server{
			Provider: l.Provider, Address: l.Server, Models: l.Models, InFlight: l.InFlight, Concurrency: l.Concurrency,
			Requests: rate(l.Requests, l.Charged.Requests, was.Requests), Tokens: rate(l.Tokens, l.Charged.Tokens, was.Tokens),
			Input: rate(l.Input, l.Charged.Input, was.Input), Output: rate(l.Output, l.Charged.Output, was.Output),
		})
	}
	v.past = append(v.past, now)
}

// since returns the oldest sample of a span of time before now, and its age in seconds. If of is not nil, the sample has that
// server: one that was just opened is not in all.
func (v *runView) since(now time.Time, span time.Duration, of *server) (s sample, seconds float64, ok bool) {
	for _, p := range v.past {
		if of != nil {
			if _, known := p.charged[*of]; !known {
				continue
			}
		}
		if age := now.Sub(p.at); age > 0 && age <= span+rateTime/2 {
			return p, age.Seconds(), true
		}
	}
	return sample{}, 0, false
}
