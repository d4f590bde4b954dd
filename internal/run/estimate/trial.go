package estimate

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"parley/internal/ask/dispatch"
	"parley/internal/ask/dispatch/budget"
	"parley/internal/ask/price"
	"parley/internal/ask/provider"
	"parley/internal/ask/sim"
	"parley/internal/run/engine"
	"parley/internal/run/planfile"
	"parley/internal/run/results"
	"parley/journal"
	"parley/llm"
	"parley/world"
)

// trial is a sample of a plan, played on the simulated provider.
type trial struct {
	plan      *planfile.Plan
	prices    *price.Table
	episodes  []*tried
	models    map[string]bool
	unbounded map[string]bool                       // agents asked without max_tokens
	maxCall   llm.Money                             // the most that one call can cost
	maxWhy    string                                // what makes it so expensive
	maxAgent  string                                // who makes it
	worst     func(*llm.Request) (llm.Money, error) // the most that a request can cost, as a run sets it aside
	money     *budget.Prices
	rooms     map[string]Room // in the budget, for the most expensive call of each model
	acts      int
	actors    Actors
	watch     func(played, of int) // nil: nobody watches
	idle      bool                 // no actor carries out acts
	refused   []string             // what no server of an agent would do, and what to do about it
}

// blind reports whether the world acted and no actor carried it out. What the world would ask
// afterwards is not known.
func (t *trial) blind() bool { return t.idle && t.acts > 0 }

// tried is one episode of a trial.
type tried struct {
	play   journal.Digest // the zero value: it failed, or may be the same as another by chance
	acts   int
	models map[string]spent
	turns  map[string]int // with calls, by strand
	failed string
	said   string // the message of the last act that failed; hostile
}

// spent is what the calls of an episode used. It assumes no savings from a prompt cache, since
// these depend on timing.
type spent struct {
	calls, input, output float64
	outputMax            float64 // output by max_tokens
	open                 int     // calls without one
	charged              float64 // tokens against tpm
	cost, batch, worst   llm.Money
}

func (s spent) plus(o spent) spent {
	return spent{
		s.calls + o.calls, s.input + o.input, s.output + o.output, s.outputMax + o.outputMax, s.open + o.open,
		s.charged + o.charged, s.cost.Plus(o.cost), s.batch.Plus(o.batch), s.worst.Plus(o.worst),
	}
}

// multiply makes an episode that is a piece of another count as the whole.
func (e *tried) multiply(n float64) {
	money := func(m llm.Money) llm.Money { return llm.Dollars(n * m.Dollars()) }
	for model, s := range e.models {
		e.models[model] = spent{
			n * s.calls, n * s.input, n * s.output, n * s.outputMax, s.open, n * s.charged, money(s.cost), money(s.batch), money(s.worst),
		}
	}
}

// cellsOf returns one spec for each cell, in order.
func cellsOf(specs world.Specs) []world.Spec {
	var cells []world.Spec
	seen := map[string]bool{}
	for _, s := range specs.Distinct() {
		if !seen[s.Cell] {
			seen[s.Cell] = true
			cells = append(cells, s)
		}
	}
	return cells
}

// minSample is the size of the sample of a plan with fewer episodes, unless Config.Episodes is
// lower: a single episode does not show how much they differ.
const minSample = 8

// draw chooses about n random episodes, the same number of each cell. With more cells than n, it
// chooses two of each of n random cells. Two are the fewest that show how much episodes of a
// cell differ.
func (o *outlook) draw(n int, r *rand.Rand) {
	want := min(max(n, 2), max(o.specs.Len(), minSample))
	cells := r.Perm(len(o.cells))[:min(want, len(o.cells))]
	slices.Sort(cells)
	each := max(2, (want+len(cells)-1)/max(1, len(cells)))
	byCell := splitCells(o.specs)
	for _, i := range cells {
		specs := byCell[o.cells[i].Cell]
		p := part{cell: o.cells[i].Cell, low: specs.Len(), high: specs.Len(), stages: 1, from: len(o.sample)}
		o.sample = append(o.sample, some(specs, each, r)...)
		p.to = len(o.sample)
		o.parts = append(o.parts, p)
	}
}

// splitCells returns the specs of each cell.
func splitCells(specs world.Specs) map[string]world.Specs {
	blocks := map[string][]world.Block{}
	for b := range specs.Blocks() {
		groups := map[string][]world.Group{}
		for _, g := range b.Groups {
			groups[g.Spec.Cell] = append(groups[g.Spec.Cell], g)
		}
		for cell, own := range groups {
			blocks[cell] = append(blocks[cell], world.Block{Groups: own, Rounds: b.Rounds})
		}
	}
	out := make(map[string]world.Specs, len(blocks))
	for cell, own := range blocks {
		made, err := world.Blocks(own...)
		if err != nil {
			continue // a part of blocks is blocks too
		}
		out[cell] = made
	}
	return out
}

// some returns n random specs, each once. If there are fewer than n, it repeats them with other
// deals.
func some(specs world.Specs, n int, r *rand.Rand) []world.Spec {
	var out []world.Spec
	for again := 0; len(out) < n && specs.Len() > 0; again++ {
		for _, i := range randomIndexes(min(n-len(out), specs.Len()), specs.Len(), r) {
			s := specs.At(i)
			s.Deal += again * specs.Len()
			out = append(out, s)
		}
	}
	return out
}

// randomIndexes returns n different random numbers below limit.
func randomIndexes(n, limit int, r *rand.Rand) []int {
	if limit < 8*n {
		return r.Perm(limit)[:n]
	}
	seen := map[int]bool{}
	out := make([]int, 0, n)
	for len(out) < n {
		if i := r.IntN(limit); !seen[i] {
			seen[i] = true
			out = append(out, i)
		}
	}
	return out
}

// play plays the sample and counts its calls.
func (t *trial) play(ctx context.Context, sample []world.Spec) error {
	model, err := sim.New(sim.Config{StandIns: sim.StandIns(t.plan.Kind.All()...)})
	if err != nil {
		return err
	}
	models, err := dispatch.New(dispatch.Config{
		Open: func(name string) (dispatch.Lane, error) {
			return dispatch.Lane{Provider: provider.Provider{Name: name, Dialect: "sim"}, Model: steady{model}}, nil
		},
		Prices: t.prices,
	})
	if err != nil {
		return err
	}
	t.worst = models.Worst
	memory := &journal.Memory{}
	c := engine.Config{Journal: memory, Plan: world.List(sample...), Models: models}
	if t.watch != nil {
		played := 0
		c.Watch = func(e engine.Event) {
			if e.Ended != nil {
				played++
				t.watch(played, len(sample))
			}
		}
	}
	if _, err := t.actors.play(ctx, &c, "check", t.plan); err != nil {
		return err
	}
	_, t.idle = c.Actor.(noActor)
	t.models, t.unbounded, t.rooms = map[string]bool{}, map[string]bool{}, map[string]Room{}
	t.money = budget.NewPrices(t.prices, func(model string) bool { return t.account(model).KeepsLimits() })
	for range sample {
		t.episodes = append(t.episodes, &tried{models: map[string]spent{}, turns: map[string]int{}})
	}
	seen := map[journal.Turn]bool{}
	return memory.Read(ctx, journal.Whole(), func(e journal.Entry) error {
		switch e := e.(type) {
		case *journal.Replied:
			t.replied(e, seen)
		case *journal.Ended:
			ep := t.episodes[e.Episode]
			ep.failed = e.Outcome.Failed
			if alone := len(ep.models) == 0 && ep.acts == 0; ep.failed == "" && (!e.Chance || alone) {
				ep.play = e.Play
			}
		}
		return nil
	})
}

// person and answerer are the models that take the part of people and of programs.
const (
	person   = "sim/" + world.Human
	answerer = "sim/program"
)

// simulated returns the agents of a plan with simulated ones in place of people and programs. Where the kind gives programs work,
// they stay what they are, and idle does the work.
func simulated(of *planfile.Plan) []world.Agent {
	out := slices.Clone(of.Agents)
	acting := of.Acting()
	work := len(acting.Kind.Starts(acting.Params).Seats) > 0
	for i := range out {
		switch {
		case out[i].Human():
			out[i].Model = person
		case out[i].Program != nil && !work:
			out[i].Program, out[i].Model = nil, answerer
		}
	}
	return out
}

// idle answers in place of programs: nothing was done, and that is worth nothing.
type idle struct{}

// Ask returns a Done.
func (idle) Ask(_ context.Context, q engine.Question) (*llm.Response, error) {
	b, err := json.Marshal(world.Done{Check: &world.Checked{Rewards: map[string]float64{"reward": 0}}})
	return &llm.Response{JSON: b, Model: q.Request.Model, Finish: llm.FinishStop}, err
}

// Drain does nothing: nothing waits.
func (idle) Drain() {}

// replied counts one call.
func (t *trial) replied(e *journal.Replied, seen map[journal.Turn]bool) {
	ep, req := t.episodes[e.Episode], e.Request
	switch {
	case e.Act != nil:
		t.acts++
		ep.acts++
		if e.Error != nil {
			ep.said = results.FailureText(e.Error, true)
		}
		return
	case req == nil || req.Model == person || req.Model == answerer || journal.ByProgram(req.Model):
		return // a bot's call, or a person's or a program's
	}
	if !seen[e.Turn] {
		seen[e.Turn] = true
		ep.turns[e.Strand]++
	}
	var used llm.Usage
	if e.Response != nil {
		u := e.Response.Usage
		used = budget.CountAudio(req, llm.Usage{Input: u.Input, Audio: u.Audio, Output: u.Output})
	}
	p, _ := t.prices.FindIn(req.Model, req.Tier)
	s := spent{
		calls: 1, input: float64(used.Input), output: float64(used.Output), outputMax: float64(req.MaxTokens),
		charged: float64(t.charged(req, used)),
		cost:    p.Cost(used, false), batch: p.Cost(used, t.plan.Batches(req.Model)), worst: p.Cost(llm.Usage{Input: used.Input, Audio: used.Audio, Output: req.MaxTokens}, false),
	}
	if req.MaxTokens <= 0 {
		s.open = 1
		t.unbounded[e.Agent] = true
	}
	money := t.money.Lookup(req.Model)
	terms := money.Terms(req, false)
	if money.OK { // the error about an unknown model compares its name with all that are known
		if worst, err := t.worst(req); err == nil && worst > t.maxCall {
			t.maxCall, t.maxAgent, t.maxWhy = worst, e.Agent, terms.WhyWorst("max_tokens")
		}
	}
	if aside, exceeds := terms.Reserve(); t.plan.Budget > 0 && aside > t.rooms[req.Model].Aside {
		t.rooms[req.Model] = Room{Model: req.Model, AtOnce: terms.AtOnce(t.plan.Budget), Aside: aside, Exceeds: exceeds}
	}
	t.refuse(e.Agent, req)
	t.models[req.Model] = true
	ep.models[req.Model] = ep.models[req.Model].plus(s)
}

// maxPlace says where the plan has the key that limits the most expensive call, or could have it.
func (t *trial) maxPlace() string {
	plan := t.plan
	if plan.Nested != nil {
		if _, in := plan.Nested.Agent(t.maxAgent); in {
			plan = plan.Nested
		}
	}
	return plan.Place("agents", t.maxAgent, "max_tokens")
}

// trains reports whether an agent is trained: it is marked, or none is.
func (t *trial) trains(agent string) bool {
	marked := slices.ContainsFunc(t.plan.Agents, func(a world.Agent) bool { return a.Trainable })
	return !marked || slices.ContainsFunc(t.plan.Agents, func(a world.Agent) bool { return a.Name == agent && a.Trainable })
}

// refuse notes what no server of an agent would do: return token ids that its training needs, or take a file.
func (t *trial) refuse(agent string, req *llm.Request) {
	p := t.account(req.Model)
	why := p.Misfit(req)
	if req.TokenIDs && t.trains(agent) && !p.ReturnsTokens(req.Model) {
		why = fmt.Sprintf("the plan asks %s for token ids, and providers.%[2]s does not say that its server returns them, so they are not requested: add capabilities: [{match: \"%[2]s/*\", token_ids: true}] to providers.%[2]s, or do not ask for them", req.Model, p.Name)
	}
	if why != "" {
		t.refused = append(t.refused, "agents."+agent+": "+why)
	}
}

// charged returns the tokens that a call counts against a limit per minute: see
// provider.Counting.
func (t *trial) charged(req *llm.Request, u llm.Usage) int {
	if t.account(req.Model).Counts() == provider.CountUsed {
		return u.Total()
	}
	return max(req.MaxTokens, u.Input)
}

// account returns the provider of a model.
func (t *trial) account(model string) provider.Provider {
	name, _ := llm.SplitModel(model)
	i := slices.IndexFunc(t.plan.Providers, func(p provider.Provider) bool { return p.Name == name })
	if i < 0 {
		return provider.Provider{Name: name}
	}
	return t.plan.Providers[i]
}

// values returns a number for each episode of the sample.
func values(of []spent, get func(spent) float64) []float64 {
	out := make([]float64, len(of))
	for i, s := range of {
		out[i] = get(s)
	}
	return out
}

// of returns what each episode spent on the wanted models.
func (t *trial) of(wanted func(model string) bool) []spent {
	out := make([]spent, len(t.episodes))
	for i, ep := range t.episodes {
		for model, s := range ep.models {
			if wanted(model) {
				out[i] = out[i].plus(s)
			}
		}
	}
	return out
}

// turnsInARow counts the turns with calls that wait for each other: those of a strand and, for
// each of its forks, those of the longest strand.
func (e *tried) turnsInARow() int {
	turns, deepest := map[string]int{}, 0
	for path, n := range e.turns {
		turns[path] = n
		deepest = max(deepest, strings.Count(path, "/"))
	}
	for depth := deepest; depth > 0; depth-- {
		longest := map[[2]string]int{} // by the strand that forked, and its turn
		for path, n := range turns {
			if strings.Count(path, "/") != depth {
				continue
			}
			parent, last := "", strings.TrimSuffix(path, "/")
			if i := strings.LastIndexByte(last, '/'); i >= 0 {
				parent, last = last[:i+1], last[i+1:]
			}
			fork, _, _ := strings.Cut(last, ".")
			at := [2]string{parent, fork}
			longest[at] = max(longest[at], n)
		}
		for at, n := range longest {
			turns[at[0]] += n
		}
	}
	return turns[""]
}

// play plays a run of a plan with simulated agents to its end. It sets the rest of c: the actor is noActor if there is no
// other.
func (a Actors) play(ctx context.Context, c *engine.Config, run string, of *planfile.Plan) (res engine.Result, err error) {
	c.Kind = of.Kind
	c.Begun = journal.Begun{
		Version: journal.Version, Run: run, Kind: of.Kind.Name, KindVersion: of.Kind.Version, Nested: of.NestedKind().Name, NestedVersion: of.NestedKind().Version,
		Seed: of.Seed, Agents: simulated(of), Plan: of.JSON(),
	}
	if a != nil {
		leave, err := a(c)
		if err != nil {
			return res, err
		}
		defer leave(ctx)
	}
	if c.Actor == nil {
		c.Actor = noActor{}
	}
	c.Programs = idle{}
	res, err = engine.Run(ctx, *c)
	switch {
	case err != nil:
		return res, fmt.Errorf("cannot be played: %w", err)
	case res.State != journal.Complete:
		return res, fmt.Errorf("cannot be played: %s", res.Reason)
	}
	return res, nil
}

// noActor answers every act with a failure: a check touches nothing outside.
type noActor struct{}

// Act returns a failure.
func (noActor) Act(context.Context, journal.Turn, int, string, world.Act) (*llm.Response, error) {
	return nil, &llm.Error{Kind: llm.KindBadRequest, Status: 501, Message: "a check carries out no acts"}
}

// steady makes the simulated provider answer a deterministic request, such as one at
// temperature 0, the same way each time, as real providers do.
type steady struct{ llm.Model }

// Ask asks the model.
func (s steady) Ask(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	if !engine.Samples(req) && req.Sample != 0 {
		same := *req
		same.Sample = 0
		req = &same
	}
	return s.Model.Ask(ctx, req)
}

// copies warns if the repeats of cells in the sample are copies of each other.
func (c Config) copies(t *trial, o *outlook) string {
	if o.foreseen { // the sample of a part may repeat one episode
		return ""
	}
	agents := map[string]bool{}
	cells, repeated, repeats := 0, 0, 0
	for _, p := range o.parts {
		if p.low < 2 {
			continue
		}
		repeated++
		if !same(t.episodes[p.from:p.to]) {
			continue
		}
		cells++
		repeats = max(repeats, p.low)
		for _, name := range o.sample[p.from].Lineup {
			agents[name] = true
		}
	}
	if cells == 0 {
		return ""
	}
	where := ""
	if repeated > 1 {
		where = fmt.Sprintf(" in %d of the %d cells of the sample", cells, repeated)
	}
	why, remedy := results.Unvarying(c.Plan.Agents, func(name string) bool { return agents[name] })
	if why == "" {
		why, remedy = "No model is asked", "let models play"
	}
	return fmt.Sprintf("episodes that differ only in their deal turn out the same%s: up to %d episodes would be copies of one play and count as one observation. %s, and %s asks the same for every deal; %s, or vary the episodes, for example with plan.matrix",
		where, repeats, why, c.Plan.Kind.Name, remedy)
}

// same reports whether episodes are copies of each other. A few episodes without a model may be
// equal by chance, so they do not count.
func same(episodes []*tried) bool {
	for _, ep := range episodes {
		if ep.play == (journal.Digest{}) || ep.play != episodes[0].play || len(ep.models) == 0 && len(episodes) < minSample {
			return false
		}
	}
	return true
}
