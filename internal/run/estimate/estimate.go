// Package estimate estimates a plan before it is played: its episodes, calls, tokens, cost and
// time, as intervals. It plays a sample of the plan on the simulated provider.
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
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"parley/internal/ask/dispatch/limiter"
	"parley/internal/ask/price"
	"parley/internal/ask/provider"
	"parley/internal/kit/statmath"
	"parley/internal/run/engine"
	"parley/internal/run/planfile"
	"parley/internal/run/planner"
	"parley/internal/run/results"
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
	// Watch is called when an episode of the sample has ended, with how many have, of how many. It must not block.
	Watch func(played, of int)
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
	// Programs are agents that are programs: how long they work and what they ask is in no number.
	Programs []string `json:"programs,omitempty"`
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
	// Call is about the most that one call can cost. The run sets it aside before the call, so a
	// run with a smaller budget stops there.
	Call llm.Money `json:"call_usd_max"`
	// Rooms say how many calls of each model the budget has room for at once, by model.
	Rooms []Room `json:"rooms"`
}

// Room is how many calls of a model the budget has room for at once, at first.
type Room struct {
	Model  string    `json:"model"`
	AtOnce int       `json:"at_once"`       // 0: none
	Aside  llm.Money `json:"set_aside_usd"` // what is set aside for each
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
	t := &trial{plan: c.Plan, prices: c.Prices, actors: c.Actors, watch: c.Watch}
	if err := t.play(ctx, o.sample); err != nil {
		return nil, err
	}
	for _, p := range o.parts {
		for i := p.from; i < p.to && p.times > 0; i++ {
			t.episodes[i].multiply(p.times)
		}
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
		e.Models = append(e.Models, ModelUse{Model: model, Use: o.use(of, o.parts, priced, c.Plan.Batches(model)), charged: o.amount(o.parts, values(of, func(s spent) float64 { return s.charged }))})
	}
	known := len(e.Unpriced) < len(e.Models) || len(e.Models) == 0
	e.Use = o.use(t.of(func(string) bool { return true }), o.parts, known, t.anyBatches())
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

// anyBatches reports whether some model can be asked through a batch API. The others then cost as much as live.
func (t *trial) anyBatches() bool {
	for model := range t.models {
		if t.plan.Batches(model) {
			return true
		}
	}
	return false
}

// use adds up what the episodes of the sample used.
func (o *outlook) use(of []spent, parts []part, priced, batches bool) Use {
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
		Batch:     maybe(priced && batches, func(s spent) float64 { return s.batch.Dollars() }),
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
		return fmt.Sprintf("%s: %s sets aside about %v for one call, more than the episode_budget of %v, so episodes would end there: set a lower max_tokens, or a higher episode_budget", t.maxPlace(), t.maxWhy, t.maxCall, limit)
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
		if !c.Plan.HasBudget() { // a run would be refused, and package app says so
			add("no price is known for %s: the costs leave it out; %s", t.prices.Suggest(model), price.Give)
		}
	}
	e.Warnings = append(e.Warnings, t.prices.Retired(slices.Sorted(maps.Keys(t.models))...)...)
	if b := e.Budget; b != nil && b.Call > b.Limit {
		add("%s: %s sets aside about %v for one call, more than the budget of %v, so the run would stop there: set a lower max_tokens, or a higher budget", t.maxPlace(), t.maxWhy, b.Call, b.Limit)
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
		add("the kind acts on the outside, and a check carries out no acts: %d acts failed, so there is no estimate; with --act, the check uses the environment servers if all of them answer, still with the simulated provider", t.acts)
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
	c.programs(e, add)
	if c.Plan.Pace == "wave" {
		add("in waves every turn waits for a batch, and the provider decides how long that takes: the time is for free pace")
	}
}

// programs says what is not known of agents that are programs.
func (c Config) programs(e *Estimate, add func(string, ...any)) {
	var asking []string
	for _, a := range c.Plan.Agents {
		if a.Program == nil {
			continue
		}
		e.Programs = append(e.Programs, a.Name)
		if a.Model != "" {
			asking = append(asking, "agents."+a.Name)
		}
	}
	if len(asking) == 0 {
		return
	}
	limit := "budget and episode_budget limit them"
	if !c.Plan.HasBudget() {
		limit = "nothing limits them: set budget or episode_budget"
	}
	add("programs decide themselves how often they ask their models (%s): their calls, cost and time are not in these numbers; %s", strings.Join(asking, ", "), limit)
	if e.Budget != nil && e.Budget.Covers == "yes" {
		e.Budget.Covers = "maybe"
	}
}

// part is a set of similar episodes: how many a plan has, in how many consecutive stages, and
// which episodes of the sample represent it.
type part struct {
	name      string
	cell      string // parts of one cell are played one after the other; cells are played side by side
	low, high int
	stages    int
	times     float64 // that of world.Part
	from, to  int     // in trial.episodes
}

// PartUse is a part of a plan that a kind makes during play, such as a generation.
type PartUse struct {
	Name     string     `json:"name"`
	Episodes PartExtent `json:"episodes"`
	Stages   int        `json:"stages"` // one after the other, at most
	Use
}

// PartExtent is how many episodes a part has, at least and at most.
type PartExtent struct {
	Low  int `json:"low"`
	High int `json:"high"`
}

// outlook holds the parts of a plan, and the sample of episodes to play.
type outlook struct {
	specs     world.Specs  // of the first stage
	cells     []world.Spec // one of each
	low, high int          // episodes
	parts     []part       // those in the sample: all, or those of random cells
	foreseen  bool         // the kind made the parts
	sample    []world.Spec
}

// look returns the outlook of the plan. If a kind plans during play, its forecast gives the
// parts. Any other plan has a part for each cell.
func (c Config) look() (*outlook, error) {
	stages, err := c.Plan.Asked()
	if err != nil {
		return nil, err
	}
	first := stages.Next(nil)
	foreseen := false
	if c.Plan.Kind.Plans() && first.Len() > 0 {
		parts, err := c.forecast(first.At(0))
		if err != nil {
			return nil, err
		}
		if foreseen = len(parts) > 0; !foreseen {
			if stages, err = c.Plan.World(); err != nil {
				return nil, err
			}
			first = stages.Next(nil)
		}
	}
	o := &outlook{specs: first, cells: cellsOf(first), foreseen: foreseen}
	r := rand.New(rand.NewPCG(c.Plan.Seed, uint64(first.Len())))
	if foreseen {
		return o, c.foresee(o, r)
	}
	o.low, o.high = first.Len(), first.Len()
	o.draw(c.Episodes, r)
	if u := c.Plan.Until; u != nil {
		o.high = len(o.cells) * u.Max
		for i := range o.parts {
			o.parts[i].high = u.Max
			o.parts[i].stages += (u.Max - u.Min + u.Step - 1) / u.Step
		}
	}
	return o, nil
}

// forecast asks the kind which parts it makes of an episode of the plan file.
func (c Config) forecast(spec world.Spec) ([]world.Part, error) {
	params, err := c.Plan.Kind.Read(spec.Params)
	var parts []world.Part
	if err == nil {
		parts, err = c.Plan.Kind.Forecast(params, spec, c.Plan.Seed)
	}
	if err != nil {
		return nil, fmt.Errorf("forecast: %w", err)
	}
	return parts, nil
}

// foresee asks the kind which parts it makes of each episode of the plan file. The episodes
// of one cell have the same parts.
func (c Config) foresee(o *outlook, r *rand.Rand) error {
	like := [][]world.Spec{}
	if o.specs.Len() > planner.MaxDistinct {
		return fmt.Errorf("the plan makes more than %d plans of its kind's own: lower episodes", planner.MaxDistinct)
	}
	at := map[string]int{} // the first part of a cell
	for _, spec := range o.specs.All() {
		parts, err := c.forecast(spec)
		if err != nil {
			return err
		}
		from, known := at[spec.Cell]
		if !known {
			from = len(o.parts)
			at[spec.Cell] = from
		}
		for i, p := range parts {
			if len(p.Like) == 0 {
				return fmt.Errorf("forecast: %s: Like has no example of its episodes", p.Name)
			}
			if !known {
				o.parts = append(o.parts, part{name: p.Name, cell: spec.Cell, times: p.Times})
				like = append(like, p.Like)
			}
			if from+i < len(o.parts) {
				of := &o.parts[from+i]
				of.low, of.high, of.stages = of.low+p.Low, of.high+p.High, max(of.stages, p.Stages)
			}
		}
	}
	const maxSample = 256 // limits the time for a matrix of many cells
	n := max(1, len(o.parts))
	each := max(2, c.Episodes/n, min(minSample, maxSample/n))
	for i := range o.parts {
		p := &o.parts[i]
		o.low, o.high = o.low+p.low, o.high+p.high
		p.from = len(o.sample)
		o.sample = append(o.sample, some(world.List(like[i]...), each, r)...)
		p.to = len(o.sample)
	}
	return nil
}

// partUses sums up parts with the same name, in the order of their first.
func (t *trial) partUses(o *outlook, priced bool) []PartUse {
	uses := []PartUse{}
	of := t.of(func(string) bool { return true })
	byName := map[string][]part{}
	for _, p := range o.parts {
		if byName[p.name] == nil {
			uses = append(uses, PartUse{Name: p.name})
		}
		byName[p.name] = append(byName[p.name], p)
	}
	for i := range uses {
		u := &uses[i]
		same := byName[u.Name]
		for _, p := range same {
			u.Episodes.Low += p.low
			u.Episodes.High += p.high
		}
		u.Stages = int(maxOfCells(same, func(p part) float64 { return float64(p.stages) }))
		u.Use = o.use(of, same, priced, t.anyBatches())
	}
	return uses
}

// maxOfCells adds get up over the consecutive parts of each cell, and returns the largest sum.
func maxOfCells(parts []part, get func(part) float64) (largest float64) {
	sums := map[string]float64{}
	for _, p := range parts {
		sums[p.cell] += get(p)
		largest = max(largest, sums[p.cell])
	}
	return largest
}

// amount returns the mean over the sample, and the total for the plan. The interval of the total
// is a prediction interval: the plan's episodes differ from the sample, as a real model's
// answers do. Parts are weighted by the most episodes that they can have.
func (o *outlook) amount(parts []part, values []float64) Amount {
	low, high := o.strata(parts, values, false), o.strata(parts, values, true)
	return Amount{
		Episode: high.Mean(results.Confidence),
		Total:   statmath.Interval{Low: max(0, low.Total(results.Confidence).Low), High: high.Total(results.Confidence).High},
	}
}

// strata returns values, one for each episode of the sample, as a sample of parts. The size of a
// part is its largest number of episodes if largest is set, and its smallest otherwise.
func (o *outlook) strata(parts []part, values []float64, largest bool) statmath.Strata {
	s := statmath.Strata{All: len(parts)}
	for _, p := range parts {
		size := p.low
		if largest {
			size = p.high
		}
		s.Size += float64(size)
		s.Sampled = append(s.Sampled, statmath.Stratum{Size: float64(size), Values: values[p.from:p.to]})
	}
	if !o.foreseen { // cells may be missing in the sample
		s.All, s.Size = len(o.cells), float64(o.low)
		if largest {
			s.Size = float64(o.high)
		}
	}
	return s
}

// TimeUse is how long a run will take, at the free pace.
type TimeUse struct {
	// Seconds has the time of the tightest bound as its low end. Its high end adds the longest
	// sequence of turns.
	Seconds statmath.Interval `json:"seconds"`
	// Turns is how many consecutive turns with calls an episode has, on average and at most.
	// In waves over a batch API, each is a wave.
	Turns    float64 `json:"turns_in_a_row"`
	TurnsMax int     `json:"turns_in_a_row_max"`
	// Latency is the assumed duration of a call, in seconds.
	Latency float64 `json:"latency_s"`
	// Bound names what takes longest.
	Bound string `json:"bound"`
	// Assumes lists the other assumptions.
	Assumes []string `json:"assumes"`
}

// bound is how long one limit alone would make the run take, in seconds.
type bound struct {
	what string
	time statmath.Interval
}

func (c Config) time(t *trial, o *outlook, e *Estimate) TimeUse {
	lat := c.Latency.Seconds()
	u := TimeUse{Latency: lat, Assumes: []string{}}
	turns := make([]float64, len(t.episodes))
	for i, ep := range t.episodes {
		turns[i] = float64(ep.turnsInARow())
		u.TurnsMax = max(u.TurnsMax, ep.turnsInARow())
	}
	u.Turns = o.strata(o.parts, turns, true).Mean(results.Confidence).Mean
	row := bound{"turns in a row", statmath.Interval{
		Low:  lat * maxOfCells(o.parts, func(p part) float64 { return certain(p, turns[p.from:p.to]) }),
		High: lat * maxOfCells(o.parts, func(p part) float64 { return float64(p.stages) * slices.Max(turns[p.from:p.to]) }),
	}}
	bounds := c.rates(t, e, &u)
	if n := c.Plan.Limits.Concurrency; n > 0 {
		bounds = append(bounds, bound{fmt.Sprintf("limits.concurrency of %d", n), times(e.Calls.Total, lat/float64(n))})
	}
	if live := c.Plan.Limits.Live; live > 0 {
		played := statmath.Interval{Low: float64(e.Episodes.Low), High: float64(e.Episodes.High)}
		bounds = append(bounds, bound{fmt.Sprintf("limits.live of %d", live), times(played, u.Turns*lat/float64(live))})
	}
	if c.Plan.Pace != "wave" { // batches set less aside
		bounds = append(bounds, c.waits(t, e, lat))
	}
	longest := row
	for _, b := range bounds {
		u.Seconds.Low = max(u.Seconds.Low, b.time.Low)
		u.Seconds.High = max(u.Seconds.High, b.time.High)
		if b.time.High > longest.time.High {
			longest = b
		}
	}
	u.Seconds.Low = max(u.Seconds.Low, row.time.Low)
	u.Seconds.High += row.time.High
	u.Bound = longest.what
	return u
}

// waits returns how long calls take where no more of them are in flight than the budget has room for. A server that is not known to
// stop at max_tokens may show at once that it does.
func (c Config) waits(t *trial, e *Estimate, latency float64) bound {
	b := bound{what: "calls that wait for room in the budget"}
	for _, m := range e.Models {
		if r := t.rooms[m.Model]; r.AtOnce > 0 {
			all := times(m.Calls.Total, latency/float64(r.AtOnce))
			if r.Exceeds {
				all.Low = 0
			}
			b.time = sum(b.time, all)
		}
	}
	return b
}

// certain returns the consecutive turns of a part that is always played.
func certain(p part, turns []float64) float64 {
	if p.low == 0 {
		return 0
	}
	return statmath.Mean(turns, results.Confidence).Mean
}

// rates returns the bounds from the limits of each account. Models that share limits add up.
func (c Config) rates(t *trial, e *Estimate, u *TimeUse) []bound {
	type load struct {
		limits                         provider.Limits
		calls, input, output, together statmath.Interval
	}
	loads := map[string]*load{}
	for _, m := range e.Models {
		name, limits := limitsOf(t.account(m.Model), m.Model)
		l := loads[name]
		if l == nil {
			l = &load{limits: limits}
			loads[name] = l
		}
		l.calls, l.input = sum(l.calls, m.Calls.Total), sum(l.input, m.Input.Total)
		l.output, l.together = sum(l.output, m.Output.Total), sum(l.together, m.charged.Total)
	}
	var bounds []bound
	for _, name := range slices.Sorted(maps.Keys(loads)) {
		l := loads[name]
		for _, r := range []struct {
			what      string
			perMinute float64
			of        statmath.Interval
		}{
			{"rpm", l.limits.RPM, l.calls}, {"tpm", l.limits.TPM, l.together},
			{"itpm", l.limits.ITPM, l.input}, {"otpm", l.limits.OTPM, l.output},
		} {
			if r.perMinute > 0 {
				bounds = append(bounds, bound{fmt.Sprintf("%s of %s", r.what, name), times(r.of, 60/r.perMinute)})
			}
		}
		if l.limits == (provider.Limits{}) && !strings.HasPrefix(name, "sim") {
			u.Assumes = append(u.Assumes, name+" has no limits in the plan: the estimate assumes that it accepts every call")
		}
		bounds = append(bounds, bound{"concurrency of " + name, inFlight(l.calls, l.limits.Concurrency, u.Latency)})
	}
	return bounds
}

// inFlight returns how long calls take with this limit of calls in flight. Without a limit, few are
// in flight at first, and soon more: see limiter.
func inFlight(calls statmath.Interval, limit int, latency float64) statmath.Interval {
	if limit > 0 {
		return times(calls, latency/float64(limit))
	}
	least := times(calls, latency/limiter.MaxConcurrency)
	ramp := limiter.RampTime(calls.High, time.Duration(latency*float64(time.Second))).Seconds()
	return statmath.Interval{Low: least.Low, High: max(least.High, ramp+latency)}
}

// limitsOf returns the limits of a model and their owner: the longest pattern that the model
// matches, or the account for all other models.
func limitsOf(p provider.Provider, model string) (string, provider.Limits) {
	_, name := llm.SplitModel(model)
	for _, pattern := range p.LimitPatterns() {
		if provider.Matches(pattern, name) {
			return p.Name + "/" + pattern, p.ModelLimits[pattern]
		}
	}
	return p.Name, p.Limits
}

func sum(a, b statmath.Interval) statmath.Interval {
	return statmath.Interval{Low: a.Low + b.Low, High: a.High + b.High}
}

func times(i statmath.Interval, f float64) statmath.Interval {
	return statmath.Interval{Low: i.Low * f, High: i.High * f}
}
