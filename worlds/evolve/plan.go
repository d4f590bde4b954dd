package evolve

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"parley/world"
	"parley/worlds/evolve/genome"
	"parley/worlds/evolve/problem"
)

// plan is the state of an evolution.
type plan struct {
	Params
	numbers
	cell   world.Spec    // of the plan file
	set    *problem.Set  // nil: trials are episodes of another plan
	nested *nestedTrials // nil: trials are of problems
	pool   []genome.Span // what mutations insert
	rand   *rand.Rand

	// phase is the next step. It returns episodes to play, or returns none and sets another phase.
	phase func() world.Specs
	asked []askedTrial // the trials of the stage, in order
	// breedings is how many breedings stand before these trials.
	breedings int
	last      []world.Played // the stage that was played last

	all    []*individual // all prompts, by id
	byText map[string]*individual
	roots  []*individual // the seeds
	// islands are the populations: the prompts that can be parents.
	islands []island

	generation int
	runners    []*individual // the new prompts of this generation
	round      int           // of the race
	drafts     []*draft      // prompts that the breeder is asked for
	now        Generation    // the counts of this generation so far
	history    []Generation
	calls      int // of solvers
	bred       int // calls of the breeder
	stopped    Stop

	winner    *individual
	entrants  []entrant
	transfers []transfer
	failed    error // why the evolution cannot continue
}

// island is a population.
type island struct{ members []*individual }

// individual is a prompt in the population.
type individual struct {
	Prompt
	texts   []genome.Genome // of each path of change; one without a nested plan
	train   []Result        // on the training problems so far, in order
	valid   []Result
	test    []Result
	parts   Parts // of train
	dropped bool  // it fell behind in its race
}

// askedTrial is a trial of the current stage and its individual.
type askedTrial struct {
	in *individual
	Trial
	// Of a trial in episodes of the nested plan: its problems, and which of them each episode is of, from 0.
	from, to int
	of       []int
}

// Plan returns the plan of one evolution.
func (definition) Plan(given *Params, cell world.Spec, seed uint64) (world.Stages, error) {
	if given.Episode != nil && given.check() == nil {
		return world.List(cell), nil // a single episode that is played again
	}
	return newPlan(given, nil, cell, seed)
}

// newPlan returns the plan of an evolution. nested is the kind of the plan whose episodes are the trials, if they are not of problems.
func newPlan(given *Params, nested *world.Kind, cell world.Spec, seed uint64) (*plan, error) {
	if err := given.check(); err != nil {
		return nil, err
	}
	p := &plan{
		Params: *given, numbers: given.numbers(), cell: cell, pool: given.phrases(),
		rand: rand.New(rand.NewPCG(seed, uint64(cell.Deal))), byText: map[string]*individual{}, islands: make([]island, given.Islands.Count),
	}
	if nested == nil {
		p.set = given.problemSet()
	} else if err := p.nest(*nested, seed); err != nil {
		return nil, err
	}
	if need := p.finalCalls() + p.perProblem()*p.firstRound()*p.population; p.MaxCalls > 0 && p.MaxCalls < need {
		return nil, fmt.Errorf("evolve: params.max_calls: %d: the first round and the final test need %d; raise it to that or more", p.MaxCalls, need)
	}
	p.phase = p.begin
	return p, nil
}

// Next adds the outcomes of the last stage and returns the next one.
func (p *plan) Next(last []world.Played) world.Specs {
	p.takeResults(last)
	for p.phase != nil && p.failed == nil {
		if specs := p.phase(); specs.Len() > 0 && p.failed == nil {
			return specs
		}
	}
	return world.Specs{}
}

// Err returns why the evolution cannot continue.
func (p *plan) Err() error { return p.failed }

// Transcripts sets what reads transcripts, for reflections.
func (p *plan) Transcripts(read func(episode int) ([]world.TranscriptEntry, error)) {
	if p.nested != nil {
		p.nested.read = read
	}
}

// takeResults adds the results of trials to their individuals.
func (p *plan) takeResults(last []world.Played) {
	p.last = last
	last = last[min(p.breedings, len(last)):]
	p.breedings = 0
	for i := range p.asked {
		a := &p.asked[i]
		in := a.in
		rec, n := p.resultsOf(a, last)
		last = last[min(n, len(last)):]
		p.calls += rec.Calls
		switch a.Purpose {
		case purposeValidation:
			in.valid = append(in.valid, rec.Results...)
		case purposeTest:
			in.test = append(in.test, rec.Results...)
		case purposeTransfer:
			p.transferred(a, rec.Results)
		default:
			in.train = append(in.train, rec.Results...)
			in.parts = p.Fitness.Parts(in.train, in.Text)
			p.now.Calls += rec.Calls
		}
	}
	p.asked = nil
}

// resultsOf returns the results of a trial, and how many of the episodes are its own.
func (p *plan) resultsOf(a *askedTrial, last []world.Played) (rec trialRecord, n int) {
	if p.nested != nil {
		rec.Results, rec.Calls = p.nestedResults(a, last)
		return rec, rec.Calls
	}
	if len(last) > 0 {
		rec, _ = readData[trialRecord](last[0].Outcome)
	}
	if len(rec.Results) != len(a.Problems) { // the world failed: nothing is known
		rec = trialRecord{Results: make([]Result, len(a.Problems))}
	}
	return rec, 1
}

// add creates an individual from new texts.
func (p *plan) add(texts []genome.Genome, operator string, isle int, parents ...*individual) *individual {
	text := p.textOf(texts)
	in := &individual{texts: texts, Prompt: Prompt{ID: len(p.all), Text: text, Generation: p.generation, Island: isle, Operator: operator, Evolution: p.cell.Deal}}
	for _, x := range parents {
		in.Parents = append(in.Parents, x.ID)
	}
	p.all = append(p.all, in)
	p.byText[text] = in
	return in
}

// textOf returns texts as one, each below its path if there are several.
func (p *plan) textOf(texts []genome.Genome) string {
	if len(texts) == 1 {
		return texts[0].String()
	}
	var parts []string
	for i, g := range texts {
		parts = append(parts, p.Change[i]+":\n"+g.String())
	}
	return strings.Join(parts, "\n\n")
}

// spans returns the texts as one genome.
func (in *individual) spans() genome.Genome {
	if len(in.texts) == 1 {
		return in.texts[0]
	}
	return genome.Parse(in.Text)
}

// beginnings returns the texts to begin with.
func (p *plan) beginnings() (all [][]genome.Genome) {
	if p.nested != nil {
		var own []genome.Genome
		texts := nestedTexts(p.Nested)
		for _, path := range p.Change {
			i := slices.IndexFunc(texts, func(t planText) bool { return names(path, t.path) })
			own = append(own, genome.Parse(texts[i].text))
		}
		all = append(all, own)
	}
	for _, text := range p.seeds() {
		all = append(all, []genome.Genome{genome.Parse(text)})
	}
	return all
}

// begin creates the first generation: the seeds and, if there are too few, changed copies.
func (p *plan) begin() world.Specs {
	var seeds []*individual
	for i, texts := range p.beginnings() {
		if p.byText[p.textOf(texts)] == nil && len(seeds) < p.population {
			seeds = append(seeds, p.add(texts, "seed", i%len(p.islands)))
		}
	}
	p.roots = seeds
	for tries := 0; len(p.all) < p.population && tries < 20*p.population; tries++ {
		p.addVariant(len(p.all)%len(p.islands), 3)
	}
	p.runners = slices.Clone(p.all)
	p.openGeneration()
	p.phase = p.race
	return world.Specs{}
}

// addVariant adds a seed with 1 to maxChanges random changes, if the result is new.
func (p *plan) addVariant(isle, maxChanges int) {
	parent := p.roots[p.rand.IntN(len(p.roots))]
	texts := slices.Clone(parent.texts)
	k := p.oneOf(texts)
	for range 1 + p.rand.IntN(maxChanges) {
		texts[k] = p.mutate(texts[k], p.spanMutation())
	}
	p.addChild(texts, "variant", isle, []*individual{parent})
}

// openGeneration resets the counts for a new generation.
func (p *plan) openGeneration() {
	p.round = 0
	p.now = Generation{Number: p.generation, New: len(p.runners), Duplicates: p.now.Duplicates, Bred: p.now.Bred, Calls: p.now.Calls, CrossoverRate: p.crossover, MutationRate: p.mutation}
}

// oneOf draws one of the texts of a candidate.
func (p *plan) oneOf(texts []genome.Genome) int {
	if len(texts) == 1 {
		return 0
	}
	return p.rand.IntN(len(texts))
}

// perProblem returns the number of calls for one problem or, with a nested plan, of episodes.
func (p *plan) perProblem() (n int) {
	if p.nested == nil {
		return p.Solvers * p.Samples
	}
	for _, cell := range p.nested.cells {
		size := 0
		for _, g := range cell.groups {
			if cell.tasks {
				size = max(size, g.Size)
			} else {
				size += g.Size
			}
		}
		n += size
	}
	return n
}

// problems returns the number of problems of a purpose, and the number of the first.
func (p *plan) problems(purpose string) (n, first int) {
	of := problem.Sizes{Train: p.train, Validation: p.Problems.Validation, Test: p.Problems.Test}
	if p.nested != nil {
		of = problem.Sizes(p.Split)
	}
	switch purpose {
	case purposeValidation:
		return of.Validation, of.Train
	case purposeTest, purposeTransfer:
		return of.Test, of.Train + of.Validation
	}
	return of.Train, 0
}

// trialOf returns the episodes of a trial on some of the problems of its purpose, and remembers its individual.
func (p *plan) trialOf(in *individual, t Trial, from, to int, label string, deal int) world.Specs {
	t.Prompt = in.Prompt
	a := askedTrial{in: in, Trial: t}
	if p.nested != nil {
		_, first := p.problems(t.Purpose)
		a.from, a.to = first+from, first+to
		specs := p.nestedSpecs(&a, label)
		p.asked = append(p.asked, a)
		return specs
	}
	switch t.Purpose {
	case purposeValidation:
		t.Problems = p.set.Validation[from:to]
	case purposeTest, purposeTransfer:
		t.Problems = p.set.Test[from:to]
	default:
		t.Problems = p.set.Train[from:to]
	}
	a.Problems = t.Problems
	p.asked = append(p.asked, a)
	s := p.spec(Episode{Trial: &t}, label, deal)
	s.Lineup = withModel(s.Lineup, solverSeats(p.Solvers), t.Model)
	return world.List(s)
}

// spec returns the spec of an episode. Its params hold only what the episode needs: not the whole set of problems, and
// not what only the plan needs.
func (p *plan) spec(e Episode, label string, deal int) world.Spec {
	b, err := json.Marshal(struct {
		asking
		Crossover map[string]float64 `json:"crossover"`
		Mutation  map[string]float64 `json:"mutation"`
		Episode   Episode            `json:"episode"`
	}{p.asking(), p.Crossover, p.Mutation, e})
	if err != nil {
		p.failed = fmt.Errorf("evolve: %s: %w", label, err) // not reached: these are plain values
	}
	s := p.cell
	s.Params, s.Deal = b, deal
	if s.Cell = label; p.cell.Cell != "" {
		s.Cell = p.cell.Cell + ": " + label
	}
	return s
}

// firstRound returns the number of problems of the first round.
func (p *plan) firstRound() int {
	if p.Race.Minibatch == 0 {
		return p.train
	}
	return min(p.Race.Minibatch, p.train)
}

// roundRange returns the range of training problems of a round: first a minibatch, then each time as many as in all rounds
// before.
func (p *plan) roundRange(round int) (from, to int) {
	for to = p.firstRound(); round > 0; round-- {
		from, to = to, min(2*to, p.train)
	}
	return from, to
}

// race plays a round of the race. It drops the prompts that are behind, and tries the others on the next problems.
func (p *plan) race() world.Specs {
	from, to := p.roundRange(p.round)
	if p.round > 0 {
		p.drop(from)
	}
	in := slices.DeleteFunc(slices.Clone(p.runners), func(x *individual) bool { return x.dropped })
	left := slices.DeleteFunc(slices.Clone(in), func(x *individual) bool { return len(x.train) >= to }) // the others began while the breeder wrote
	if from == to || len(in) == 0 || !p.affords(len(left)*(to-from)*p.perProblem()) {
		p.phase = p.settle
		return world.Specs{}
	}
	specs := p.trials(left, from, to)
	p.round++
	return world.Join(specs...)
}

// trials returns the trials of a round of the race.
func (p *plan) trials(in []*individual, from, to int) (specs []world.Specs) {
	for _, x := range in {
		specs = append(specs, p.trialOf(x, Trial{Purpose: purposeRace, Round: p.round}, from, to, generationLabel(p.generation), x.ID))
	}
	return specs
}

// affords reports whether that many more calls leave enough calls for the final test.
func (p *plan) affords(calls int) bool {
	return p.MaxCalls == 0 || p.calls+calls+p.finalCalls() <= p.MaxCalls
}

// drop removes prompts from the race that are behind the last prompt that is always kept. The difference, on the problems
// that both have seen, must be larger than chance explains.
func (p *plan) drop(seen int) {
	for i := range p.islands {
		field := p.contenders(i, seen)
		keep := p.alwaysKept()
		if len(field) <= keep {
			continue
		}
		slices.SortStableFunc(field, func(a, b contender) int { return cmp.Compare(b.fitness, a.fitness) })
		for _, c := range field[keep:] {
			if c.running && p.behind(c, field[keep-1]) {
				c.in.dropped = true
				p.now.Dropped++
				p.now.Saved += (p.train - seen) * p.perProblem()
			}
		}
	}
	for _, x := range p.runners {
		if x.parts.Problems == 0 && !x.dropped { // no answers: more calls would show nothing
			x.dropped = true
			p.now.Dropped++
		}
	}
}

// contender is a prompt in a race, with its fitness on the problems that all contenders have seen.
type contender struct {
	in      *individual
	fitness float64
	running bool
}

// contenders lists the contenders of an island: its new prompts, and its members from earlier generations.
func (p *plan) contenders(isle, seen int) []contender {
	var all []contender
	enter := func(x *individual, running bool) {
		if x.Island == isle && !x.dropped && len(x.train) >= seen && x.parts.Problems > 0 {
			all = append(all, contender{x, p.Fitness.Parts(x.train[:seen], x.Text).Fitness, running})
		}
	}
	for _, x := range p.islands[isle].members {
		enter(x, false)
	}
	for _, x := range p.runners {
		enter(x, true)
	}
	return all
}

// behind reports whether c is behind mark even at the upper end of the interval. The interval is that of the difference in
// accuracy, problem by problem. The other parts of fitness count without an interval.
func (p *plan) behind(c, mark contender) bool {
	var a, b []float64
	for i := range min(len(c.in.train), len(mark.in.train)) {
		x, okX := c.in.train[i].Score()
		y, okY := mark.in.train[i].Score()
		if okX && okY {
			a, b = append(a, x), append(b, y)
		}
	}
	d, _ := world.Paired(a, b, 2*p.Race.Confidence-1, 0) // only one end of the interval counts
	if !d.Known() {
		return false
	}
	weight := 1.0
	if f := p.Fitness; f.By == "weighted" {
		weight = f.Accuracy / (f.Accuracy + f.Consistency + f.Efficiency + f.Diversity)
	}
	return c.fitness-mark.fitness+weight*(d.High-d.Value) < 0
}

// settle ends a generation. It summarizes it, adds the new prompts to the population, and continues or stops evolution.
func (p *plan) settle() world.Specs {
	p.summarize()
	for _, x := range p.runners {
		if !x.dropped && x.parts.Problems > 0 {
			p.islands[x.Island].members = append(p.islands[x.Island].members, x)
		}
	}
	p.migrate()
	p.adapt()
	if p.stopped = p.stopReason(); p.stopped != "" {
		p.phase = p.validate
	} else {
		p.phase = p.breed
	}
	return world.Specs{}
}

// summarize summarizes the generation.
func (p *plan) summarize() {
	var present []*individual
	for _, i := range p.islands {
		present = append(present, i.members...)
	}
	present = append(present, p.runners...)
	g := &p.now
	g.Prompts, g.Worst, g.BestID = len(present), math.Inf(1), -1
	var spans []genome.Genome
	tried := 0
	for _, x := range present {
		spans = append(spans, x.spans())
		if x.parts.Problems == 0 {
			continue
		}
		tried++
		f := x.parts.Fitness
		g.Mean += f
		g.Worst = min(g.Worst, f)
		if !x.dropped && (g.BestID < 0 || f > g.Best) {
			g.Best, g.Accuracy, g.BestID = f, x.parts.Accuracy, x.ID
		}
	}
	if g.Mean /= float64(max(1, tried)); tried == 0 {
		g.Worst = 0
	}
	g.Diversity = genome.Diversity(spans)
	p.history = append(p.history, *g)
}

// migrate adds the best of each island to the parents of the next one.
func (p *plan) migrate() {
	n := len(p.islands)
	if n == 1 || p.generation == 0 || p.generation%p.Islands.Interval != 0 {
		return
	}
	leaving := make([][]*individual, n)
	for i := range p.islands {
		leaving[i] = elitesOf(p.islands[i].members, p.Islands.Migrants)
	}
	for i, all := range leaving {
		next := &p.islands[(i+1)%n]
		for _, x := range all {
			if !slices.Contains(next.members, x) {
				next.members = append(next.members, x)
			}
		}
	}
}

// adapt changes the rates. Similar prompts get more mutation, and very different ones less. Without progress there is more
// mutation and less crossover.
func (p *plan) adapt() {
	if !p.Adaptive || p.generation < 5 || p.mutation == 0 {
		return
	}
	switch d := p.now.Diversity; {
	case d < 0.1:
		p.mutation = max(p.mutation, min(0.5, p.mutation*1.1))
	case d > 0.8:
		p.mutation = min(p.mutation, max(0.05, p.mutation*0.9))
	}
	if p.crossover == 0 {
		return
	}
	if p.gainOver(5) < 0.001 {
		p.crossover = min(p.crossover, max(0.5, p.crossover*0.95))
		p.mutation = max(p.mutation, min(0.4, p.mutation*1.05))
	} else {
		p.crossover = max(p.crossover, min(0.9, p.crossover*1.02))
	}
}

// gainOver returns the difference between the best fitness of the last n generations and that of all generations before.
func (p *plan) gainOver(n int) float64 {
	cut := len(p.history) - n
	if cut <= 0 {
		return math.Inf(1)
	}
	best := func(gs []Generation) float64 {
		b := math.Inf(-1)
		for _, g := range gs {
			b = max(b, g.Best)
		}
		return b
	}
	return best(p.history[cut:]) - best(p.history[:cut])
}

// stopReason returns the reason to stop, or "" to continue.
func (p *plan) stopReason() Stop {
	alive := false
	for _, i := range p.islands {
		alive = alive || len(i.members) > 0
	}
	children := p.population - p.elite
	switch {
	case !alive:
		return stopFailures
	case p.target > 0 && p.now.Best >= p.target:
		return stopTarget
	case p.generation >= p.generations:
		return stopGenerations
	case p.patience > 0 && p.gainOver(p.patience) <= p.Improvement:
		return stopStagnation
	case p.now.Prompts > 1 && p.now.Diversity < p.DiversityThreshold:
		return stopDiversity
	case p.PlateauGenerations > 0 && math.Abs(p.gainOver(p.PlateauGenerations)) < p.PlateauThreshold:
		return stopPlateau
	case !p.affords(children * p.firstRound() * p.perProblem()):
		return stopCalls
	}
	return ""
}
