// Package estimate estimates a plan before it is played: its episodes, calls, tokens, cost and
// time, as intervals. It plays a sample of the plan on the simulated provider.
// Bench plays the whole plan there and compares how long that takes with the shortest time
// possible.
//
// It asks no provider, and the same plan gets the same estimate. It touches nothing outside the
// process, except through its Actors.
//
// Package app adds keys, servers and run files.
package estimate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"parley/internal/ask/price"
	"parley/internal/kit/statmath"
	"parley/internal/run/engine"
	"parley/internal/run/planfile"
	"parley/llm"
	"parley/world"
)

// Config configures the estimate of a plan.
type Config struct {
	Plan *planfile.Plan
	// Prices are the prices of the plan's models. Default: the embedded table.
	Prices *price.Table
	// Episodes is the approximate size of the sample, which the simulated provider answers. Default: 32.
	Episodes int
	// Latency is the assumed duration of a call. Default: 5 seconds.
	Latency time.Duration
	// Actors carries out the acts of episodes. Default: every act fails, and the estimate warns
	// that it does not cover what follows an act.
	Actors Actors
}

// Actors sets the actor of a run before it is played. The caller calls leave after the run.
// Actors may leave c.Actor nil: then every act fails.
type Actors func(c *engine.Config) (leave func(ctx context.Context), err error)

// Estimate is the estimate of a plan. Totals are 95% intervals over episodes. The tokens of
// answers are those of the simulated provider.
type Estimate struct {
	Kind     string       `json:"kind"`
	Episodes EpisodeCount `json:"episodes"`
	Use
	Models []ModelUse `json:"models"`
	// Parts are the parts of a plan that its kind makes during play. Later parts depend on the
	// outcomes of earlier ones.
	Parts  []PartUse  `json:"parts"`
	Time   TimeUse    `json:"time"`
	Budget *BudgetUse `json:"budget,omitempty"`
	// PricesOf is the date of the prices.
	PricesOf string `json:"prices_as_of"`
	// Unpriced are models whose price is not known. The costs leave them out.
	Unpriced []string `json:"unpriced"`
	// Unbounded are agents without max_tokens.
	Unbounded []string `json:"unbounded"`
	// Accounts are the providers of all models in the lineups, fallbacks included, in order.
	Accounts []string `json:"-"`
	// Balance says how evenly a matrix puts agents into seats. Nil: it does not move them.
	Balance *planfile.Balance `json:"balance,omitempty"`
	// Warnings are facts to know before you play the plan.
	Warnings []string `json:"warnings"`
}

// EpisodeCount counts the episodes of a plan and of the sample.
type EpisodeCount struct {
	Low    int `json:"low"`
	High   int `json:"high"`
	Cells  int `json:"cells"`
	Played int `json:"played"` // on the simulated provider
	Failed int `json:"failed"` // of those
}

// Amount is a count of something over the whole plan.
type Amount struct {
	Episode statmath.Estimate `json:"per_episode"`
	Total   statmath.Interval `json:"total"`
}

// Use is what calls use. A field is nil if it is not known: the maximum of tokens and cost if
// an answer has no limit, and the cost if no price is known.
type Use struct {
	Calls     Amount  `json:"calls"`
	Input     Amount  `json:"input_tokens"`
	Output    Amount  `json:"output_tokens"`
	OutputMax *Amount `json:"output_tokens_max"`
	Cost      *Amount `json:"cost_usd"`
	Batch     *Amount `json:"cost_usd_batch"`
	CostMax   *Amount `json:"cost_usd_max"`
}

// ModelUse is the use of one model.
type ModelUse struct {
	Model string `json:"model"`
	Use
	charged Amount // tokens as the server counts them against its limits
}

// BudgetUse compares the estimate with the plan's budget.
type BudgetUse struct {
	Limit llm.Money `json:"limit_usd"`
	// Covers is yes, no, maybe, or unknown if a price is missing.
	Covers string `json:"covers"`
	// Call is about the most that one call can cost. The run reserves it before the call, so a
	// run with a smaller budget stops there.
	Call llm.Money `json:"call_usd_max"`
	// Rooms say how many calls of each model the budget has room for at once, by model.
	Rooms []Room `json:"rooms"`
}

// Room is how many calls of a model the budget has room for at once, at first.
type Room struct {
	Model  string    `json:"model"`
	AtOnce int       `json:"at_once"`   // 0: none
	Aside  llm.Money `json:"aside_usd"` // what is set aside for each
	// Exceeds means that its server is not known to stop at max_tokens, so its longest answer is set aside. Once it has shown that
	// it does, there is more room.
	Exceeds bool `json:"exceeds"`
}

// Run plays a sample of the plan on the simulated provider and estimates the plan from it.
func (c Config) Run(ctx context.Context) (*Estimate, error) {
	c.Episodes, c.Latency = cmp.Or(max(0, c.Episodes), 32), cmp.Or(max(0, c.Latency), 5*time.Second)
	if c.Prices == nil {
		c.Prices = price.Embedded()
	}
	o, err := c.look()
	if err != nil {
		return nil, err
	}
	t := &trial{plan: c.Plan, prices: c.Prices, actors: c.Actors}
	if err := t.play(ctx, o.sample); err != nil {
		return nil, err
	}
	if len(t.refused) > 0 {
		return nil, c.Plan.ParamsError(errors.New(slices.Min(t.refused)))
	}
	return c.estimate(t, o), nil
}

func (c Config) estimate(t *trial, o *outlook) *Estimate {
	e := &Estimate{
		Kind: c.Plan.Kind.Name, PricesOf: t.prices.AsOf(), Models: []ModelUse{}, Parts: []PartUse{}, Accounts: c.accounts(o.cells), Unpriced: []string{}, Unbounded: []string{}, Warnings: []string{}, Balance: c.Plan.Matrix.Balance(c.Plan.Seats),
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

// use adds up what the episodes of the sample used.
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
		OutputMax: maybe(bounded, func(s spent) float64 { return s.outputMax }),
		Cost:      maybe(priced, func(s spent) float64 { return s.cost.Dollars() }),
		Batch:     maybe(priced, func(s spent) float64 { return s.batch.Dollars() }),
		CostMax:   maybe(priced && bounded, func(s spent) float64 { return s.worst.Dollars() }),
	}
}

// accounts returns the providers of all models in the lineups, fallbacks included.
func (c Config) accounts(cells []world.Spec) []string {
	all := map[string]bool{}
	for _, spec := range cells {
		for _, name := range spec.Lineup {
			a, _ := c.Plan.Agent(name)
			if f, ok := c.Plan.Agent(a.Fallback); ok && a.Human() {
				a = f
			}
			for _, model := range append([]string{a.Model}, a.Fallbacks...) {
				account, _ := llm.SplitModel(model)
				all[account] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(all))
}

func (c Config) budget(t *trial, e *Estimate) *BudgetUse {
	if c.Plan.Budget == 0 {
		return nil
	}
	b := &BudgetUse{Limit: c.Plan.Budget, Covers: "maybe", Call: t.maxCall, Rooms: []Room{}}
	switch limit := b.Limit.Dollars(); {
	case len(e.Unpriced) > 0:
		b.Covers = "unknown"
	case e.Cost.Total.Low > limit || b.Call > b.Limit:
		b.Covers = "no"
	case e.Cost.Total.High <= limit:
		b.Covers = "yes"
	}
	for _, model := range slices.Sorted(maps.Keys(t.rooms)) {
		b.Rooms = append(b.Rooms, t.rooms[model])
	}
	return b
}

// episodeBudget warns if the episode budget would stop episodes.
func (c Config) episodeBudget(t *trial, e *Estimate) string {
	limit := c.Plan.EpisodeBudget
	switch {
	case limit == 0 || e.Cost == nil:
		return ""
	case t.maxCall > limit:
		return fmt.Sprintf("one call can cost up to about %v, which is more than the episode_budget of %v, so episodes would end there: set max_tokens", t.maxCall, limit)
	case llm.Dollars(e.Cost.Episode.Mean)+t.maxCall > limit:
		return fmt.Sprintf("an episode costs about %v, and a call is made only if the most that it can cost (up to about %v) is left: an episode_budget of %v would stop some episodes", llm.Dollars(e.Cost.Episode.Mean), t.maxCall, limit)
	default:
		return ""
	}
}

// warn adds the warnings.
func (c Config) warn(t *trial, e *Estimate) {
	add := func(format string, args ...any) { e.Warnings = append(e.Warnings, fmt.Sprintf(format, args...)) }
	for _, model := range e.Unpriced {
		if c.Plan.Budget == 0 && c.Plan.EpisodeBudget == 0 { // a run would be refused, and package app says so
			add("no price is known for %s: the costs leave it out; %s", t.prices.Suggest(model), price.Give)
		}
	}
	e.Warnings = append(e.Warnings, t.prices.Retired(slices.Sorted(maps.Keys(t.models))...)...)
	if b := e.Budget; b != nil && b.Call > b.Limit {
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
			why := ep.failed
			if ep.said != "" {
				why += ": " + ep.said
			}
			add("an episode failed on the simulated provider: %s", why)
		}
	}
	if t.blind() {
		e.Episodes.Played = 0 // none could be played to its end
		if e.Budget != nil {
			e.Budget.Covers = "maybe"
		}
		add("the kind acts on the outside, and a check carries out no acts: %d acts failed, so there is no estimate; with --act, the check uses the environment servers, still with the simulated provider", t.acts)
	}
	if slices.ContainsFunc(e.Models, func(m ModelUse) bool { return strings.HasPrefix(m.Model, "sim/") }) {
		add("the prices of sim are invented: it charges nothing")
	}
	if len(e.Parts) > 0 {
		add("the kind makes the plan during play: the upper limits are those of the largest possible plan, and later episodes are assumed to ask about as much as the first")
	}
	if slices.ContainsFunc(c.Plan.Agents, world.Agent.Human) {
		add("people sit in some seats: the answers of people are not in these numbers, which are those of models, and the time is without the time that people take")
	}
	if c.Plan.Pace == "wave" {
		add("in waves every turn waits for a batch, and the provider decides how long that takes: the time is for free pace")
	}
}
