package app

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"parley/internal/config"
	"parley/internal/stats"
	"parley/internal/trust"
	"parley/llm"
	"parley/world"
)

// Check is a plan to be looked at before it is played. Nothing is asked of a provider.
type Check struct {
	Plan *config.Plan
	// Episodes is about how many to play on the simulated provider. Default: 32.
	Episodes int
	// Latency is how long a call is taken to last. Default: 5 seconds.
	Latency time.Duration
	// Act also acts on the outside: the sample is played in the environments on the servers.
	// Default: they are only asked whether they are there.
	Act bool
	// Env looks up whether keys are set. Their values go nowhere. Default: none is.
	Env func(name string) (string, bool)
	// Trust says which keys may go where. Default: as Config's.
	Trust *trust.Gate
}

// Estimate is what a plan will come to. Totals are intervals of 95%, over episodes; the
// tokens of answers are the simulated provider's.
type Estimate struct {
	Kind     string       `json:"kind"`
	Episodes EpisodeCount `json:"episodes"`
	Use
	Models []ModelUse `json:"models"`
	// Parts is what a plan is made of that its kind makes as it goes. Its later parts depend
	// on what comes of the earlier ones.
	Parts  []PartUse  `json:"parts"`
	Time   TimeUse    `json:"time"`
	Keys   []Key      `json:"keys"`
	Budget *BudgetUse `json:"budget,omitempty"`
	// Servers are those that the plan's environments are on.
	Servers  []world.Presence `json:"servers"`
	PricesOf string           `json:"prices_as_of"`
	// Unpriced are models whose price is not known: the costs leave them out.
	Unpriced []string `json:"unpriced"`
	// Unbounded are agents whose answers no max_tokens bounds.
	Unbounded []string `json:"unbounded"`
	// Outside are the files outside the plan's folder that the user allows it to name.
	Outside []string `json:"outside_files"`
	// Recorded is how the plan stands to its run file. Nil: there is none, or it has the same plan.
	Recorded *Recorded `json:"recorded,omitempty"`
	// Balance says how evenly a matrix puts agents into seats; nil: it does not move them.
	Balance *config.Balance `json:"balance,omitempty"`
	// Warnings are what a reader should know before the plan is played.
	Warnings []string `json:"warnings"`
}

// Recorded is a run file that a plan would be played into.
type Recorded struct {
	File    string  `json:"file"`
	Grown   *Growth `json:"grown,omitempty"`   // the plan asks for more
	Refused string  `json:"refused,omitempty"` // why the plan cannot be played into the file
}

// EpisodeCount is how many episodes a plan plays, and how many of them were tried.
type EpisodeCount struct {
	Low    int `json:"low"`
	High   int `json:"high"`
	Cells  int `json:"cells"`
	Played int `json:"played"` // on the simulated provider
	Failed int `json:"failed"` // of those
}

// Amount is a count of something over the whole plan.
type Amount struct {
	Episode stats.Estimate `json:"per_episode"`
	Total   stats.Interval `json:"total"`
}

// Use is what calls come to. Where something is not known it is nil: the most tokens and
// the most it costs where an answer is not bounded, and the cost where no price is known.
type Use struct {
	Calls     Amount  `json:"calls"`
	Input     Amount  `json:"input_tokens"`
	Output    Amount  `json:"output_tokens"`
	OutputMax *Amount `json:"output_tokens_max"`
	Cost      *Amount `json:"cost_usd"`
	Batch     *Amount `json:"cost_usd_batch"`
	CostMax   *Amount `json:"cost_usd_max"`
}

// ModelUse is the part of one model.
type ModelUse struct {
	Model string `json:"model"`
	Use
	charged Amount // tokens as the server counts them against its limits
}

// Key is an environment variable that a provider needs.
type Key struct {
	Provider string `json:"provider"`
	Env      string `json:"env"`
	Set      bool   `json:"set"`
	// Sent is where it goes.
	Sent []Destination `json:"sent_to"`
}

// Destination is a host that a key goes to.
type Destination struct {
	Host string `json:"host"`
	// Allowed is why it may: preset, loopback, remembered or given. Empty: the user has to be
	// asked.
	Allowed string `json:"allowed"`
	// Plain means that it travels unencrypted.
	Plain bool `json:"unencrypted"`
}

// BudgetUse compares the estimate with the plan's budget.
type BudgetUse struct {
	Limit llm.Money `json:"limit_usd"`
	// Covers is yes, no, maybe, or unknown where a price is missing.
	Covers string `json:"covers"`
	// Call is about the most that one call can cost. It is set aside before the call is
	// made, so a run with a budget below it stops there.
	Call llm.Money `json:"dearest_call_usd"`
}

// Run plays a part of the plan on the simulated provider and makes an estimate of it.
func (c Check) Run(ctx context.Context) (*Estimate, error) {
	if c.Episodes <= 0 {
		c.Episodes = 32
	}
	if c.Latency <= 0 {
		c.Latency = 5 * time.Second
	}
	if c.Env == nil {
		c.Env = func(string) (string, bool) { return "", false }
	}
	prices, err := Prices(c.Plan.Providers, c.Plan.Prices)
	if err != nil {
		return nil, fmt.Errorf("prices: %w", err)
	}
	o, err := c.look()
	if err != nil {
		return nil, err
	}
	there, all := servers(ctx, c.Plan)
	t := &trial{plan: c.Plan, prices: prices, act: c.Act && all}
	if err := t.play(ctx, o.sample); err != nil {
		return nil, err
	}
	e := c.estimate(t, o)
	e.Servers = there
	return e, nil
}

func (c Check) estimate(t *trial, o *outlook) *Estimate {
	e := &Estimate{
		Outside: append([]string{}, c.Plan.Outside...),
		Kind:    c.Plan.Kind.Name, PricesOf: t.prices.AsOf(), Models: []ModelUse{}, Parts: []PartUse{}, Keys: c.keys(o.cells), Unpriced: []string{}, Unbounded: []string{}, Warnings: []string{}, Balance: c.Plan.Balance(),
		Episodes: EpisodeCount{Low: o.low, High: o.high, Cells: len(o.cells), Played: len(t.episodes)},
	}
	for _, model := range slices.Sorted(maps.Keys(t.models)) {
		of := t.of(func(m string) bool { return m == model })
		_, priced := t.prices.Find(model)
		if !priced {
			e.Unpriced = append(e.Unpriced, model)
		}
		e.Models = append(e.Models, ModelUse{Model: model, Use: o.use(of, o.parts, priced), charged: o.amount(o.parts, values(of, func(s spent) float64 { return s.charged }))})
	}
	known := len(e.Unpriced) < len(e.Models) || len(e.Models) == 0
	e.Use = o.use(t.of(func(string) bool { return true }), o.parts, known)
	if o.foreseen && len(o.parts) > 1 {
		e.Parts = t.partUses(o, known)
	}
	if len(e.Unpriced) > 0 {
		e.CostMax = nil
	}
	e.Unbounded = append(e.Unbounded, slices.Sorted(maps.Keys(t.unbounded))...)
	e.Time = c.time(t, o, e)
	e.Budget = c.budget(t, e)
	if says := c.copies(t, o); says != "" {
		e.Warnings = append(e.Warnings, says)
	}
	c.warn(t, e)
	return e
}

// use folds what the episodes spent.
func (o *outlook) use(of []spent, parts []part, priced bool) Use {
	sum := func(get func(spent) float64) Amount { return o.amount(parts, values(of, get)) }
	maybe := func(known bool, get func(spent) float64) *Amount {
		if !known {
			return nil
		}
		a := sum(get)
		return &a
	}
	bounded := true
	for _, p := range parts {
		bounded = bounded && !slices.ContainsFunc(of[p.from:p.to], func(s spent) bool { return s.open > 0 })
	}
	return Use{
		Calls:     sum(func(s spent) float64 { return s.calls }),
		Input:     sum(func(s spent) float64 { return s.input }),
		Output:    sum(func(s spent) float64 { return s.output }),
		OutputMax: maybe(bounded, func(s spent) float64 { return s.most }),
		Cost:      maybe(priced, func(s spent) float64 { return s.cost.Dollars() }),
		Batch:     maybe(priced, func(s spent) float64 { return s.batch.Dollars() }),
		CostMax:   maybe(priced && bounded, func(s spent) float64 { return s.worst.Dollars() }),
	}
}

// keys lists what the models of the lineups need, fallbacks included.
func (c Check) keys(cells []world.Spec) []Key {
	needed := map[string]bool{}
	for _, spec := range cells {
		for _, name := range spec.Lineup {
			a, _ := c.Plan.Agent(name)
			for _, model := range append([]string{a.Model}, a.Fallbacks...) {
				account, _ := llm.SplitModel(model)
				needed[account] = true
			}
		}
	}
	keys := []Key{}
	for _, p := range c.Plan.Providers {
		if needed[p.Name] && p.KeyEnv != "" && p.Dialect != "sim" {
			v, ok := c.Env(p.KeyEnv)
			keys = append(keys, Key{Provider: p.Name, Env: p.KeyEnv, Set: ok && v != "", Sent: destinations(c.Trust, p)})
		}
	}
	return keys
}

func (c Check) budget(t *trial, e *Estimate) *BudgetUse {
	if c.Plan.Budget == 0 {
		return nil
	}
	b := &BudgetUse{Limit: c.Plan.Budget, Covers: "maybe", Call: t.dearest}
	switch limit := b.Limit.Dollars(); {
	case len(e.Unpriced) > 0:
		b.Covers = "unknown"
	case e.Cost.Total.Low > limit || b.Call > b.Limit:
		b.Covers = "no"
	case e.Cost.Total.High <= limit:
		b.Covers = "yes"
	}
	return b
}

// warn says what a number does not.
func (c Check) warn(t *trial, e *Estimate) {
	add := func(format string, args ...any) { e.Warnings = append(e.Warnings, fmt.Sprintf(format, args...)) }
	for _, model := range e.Unpriced {
		near := ""
		if n, ok := t.prices.Nearest(model); ok {
			near = fmt.Sprintf(" (did you mean %s?)", n)
		}
		add("no price is known for %s%s: the costs leave it out; name a file of prices under prices", model, near)
	}
	if b := e.Budget; b != nil && len(e.Unpriced) > 0 {
		add("with a budget every model needs a price: the run would stop at the first call of %s", e.Unpriced[0])
	} else if b != nil && b.Call > b.Limit {
		add("one call can cost up to about %v, which is more than the budget of %v, so the run would stop there: set max_tokens", b.Call, b.Limit)
	}
	if says := c.episodeBudget(t, e); says != "" {
		add("%s", says)
	}
	for _, ep := range t.episodes {
		if ep.failed == "" || t.blind() {
			continue
		}
		if e.Episodes.Failed++; e.Episodes.Failed == 1 {
			add("an episode failed on the simulated provider: %s", ep.failed)
		}
	}
	if t.blind() {
		e.Episodes.Played = 0 // nothing of them could be
		if e.Budget != nil {
			e.Budget.Covers = "maybe"
		}
		add("the kind acts on the outside, which a check does not: its %d acts were answered with a failure, so there is no estimate; --act plays in environments on servers, with the simulated provider", t.acts)
	}
	if slices.ContainsFunc(e.Models, func(m ModelUse) bool { return strings.HasPrefix(m.Model, "sim/") }) {
		add("the prices of sim are made up: it charges nothing")
	}
	if len(e.Parts) > 0 {
		add("the plan is made as it goes: at most is what it can come to, and what later episodes ask is taken to be about as long as what the first do")
	}
	if c.Plan.Pace == "wave" {
		add("in waves every turn waits for a batch, which takes as long as the provider takes: the time is that of the free pace")
	}
}
