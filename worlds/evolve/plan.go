package evolve

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"

	"parley/world"
	"parley/worlds/evolve/genome"
	"parley/worlds/evolve/problem"
)

// plan is the state of an evolution.
type plan struct {
	Params
	numbers
	cell world.Spec // of the plan file
	set  *problem.Set
	pool []genome.Span // what mutations insert
	rand *rand.Rand

	// phase is the next step. It returns episodes to play, or returns none and sets another phase.
	phase func() []world.Spec
	asked []asked        // the trials of the stage, in order
	last  []world.Played // the stage that was played last

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

	winner   *individual
	entrants []entrant
}

// island is a population.
type island struct{ members []*individual }

// individual is a prompt in the population.
type individual struct {
	Prompt
	spans   genome.Genome
	train   []Result // on the training problems so far, in order
	valid   []Result
	test    []Result
	parts   Parts // of train
	dropped bool  // it fell behind in its race
}

// asked is a trial of the current stage and its individual.
type asked struct {
	in *individual
	Trial
}

// Plan returns the plan of one evolution.
func (definition) Plan(given *Params, cell world.Spec, seed uint64) (world.Plan, error) {
	if err := given.check(); err != nil {
		return nil, err
	}
	if given.Episode != nil {
		return world.List(cell), nil // a single episode that is played again
	}
	p := &plan{
		Params: *given, numbers: given.numbers(), cell: cell, set: given.set(), pool: given.phrases(),
		rand: rand.New(rand.NewPCG(seed, uint64(cell.Deal))), byText: map[string]*individual{}, islands: make([]island, given.Islands.Count),
	}
	if need := p.finalCalls() + p.perProblem()*p.firstRound()*p.population; p.MaxCalls > 0 && p.MaxCalls < need {
		return nil, fmt.Errorf("evolve: params.max_calls: %d: the first round and the final test need %d; raise it to that or more", p.MaxCalls, need)
	}
	p.phase = p.begin
	return p, nil
}

// Next adds the outcomes of the last stage and returns the next one.
func (p *plan) Next(last []world.Played) world.Specs {
	p.take(last)
	for p.phase != nil {
		if specs := p.phase(); len(specs) > 0 {
			return world.List(specs...)
		}
	}
	return world.Specs{}
}

// take adds the results of trials to their individuals.
func (p *plan) take(last []world.Played) {
	p.last = last
	for i, a := range p.asked {
		in := a.in
		var rec recordTrial
		if i < len(last) {
			rec, _ = readRecord[recordTrial](last[i].Outcome)
		}
		if len(rec.Results) != len(a.Problems) { // the world failed: nothing is known
			rec = recordTrial{Results: make([]Result, len(a.Problems))}
		}
		p.calls += rec.Calls
		switch a.Purpose {
		case recordValidating:
			in.valid = append(in.valid, rec.Results...)
		case recordTesting:
			in.test = append(in.test, rec.Results...)
		default:
			in.train = append(in.train, rec.Results...)
			in.parts = p.Fitness.Parts(in.train, in.Text)
			p.now.Calls += rec.Calls
		}
	}
	p.asked = nil
}

// add creates an individual from a new prompt.
func (p *plan) add(g genome.Genome, text, operator string, isle int, parents ...*individual) *individual {
	in := &individual{spans: g, Prompt: Prompt{ID: len(p.all), Text: text, Generation: p.generation, Island: isle, Operator: operator, Evolution: p.cell.Deal}}
	for _, x := range parents {
		in.Parents = append(in.Parents, x.ID)
	}
	p.all = append(p.all, in)
	p.byText[text] = in
	return in
}

// begin creates the first generation: the seeds and, if there are too few, changed copies.
func (p *plan) begin() []world.Spec {
	var seeds []*individual
	for i, text := range p.seeds() {
		g := genome.Parse(text)
		if text = g.String(); p.byText[text] == nil && len(seeds) < p.population {
			seeds = append(seeds, p.add(g, text, "seed", i%len(p.islands)))
		}
	}
	p.roots = seeds
	for tries := 0; len(p.all) < p.population && tries < 20*p.population; tries++ {
		p.addVariant(len(p.all)%len(p.islands), 3)
	}
	p.runners = slices.Clone(p.all)
	p.openGeneration()
	p.phase = p.race
	return nil
}

// addVariant adds a seed with 1 to maxChanges random changes, if the result is new.
func (p *plan) addVariant(isle, maxChanges int) {
	parent := p.roots[p.rand.IntN(len(p.roots))]
	g := parent.spans
	for range 1 + p.rand.IntN(maxChanges) {
		g = p.mutate(g, p.spanMutation())
	}
	p.born(g, "variant", isle, []*individual{parent})
}

// openGeneration resets the counts for a new generation.
func (p *plan) openGeneration() {
	p.round = 0
	p.now = Generation{Number: p.generation, New: len(p.runners), Duplicates: p.now.Duplicates, Bred: p.now.Bred, CrossoverRate: p.crossover, MutationRate: p.mutation}
}

// perProblem returns the number of calls for one problem.
func (p *plan) perProblem() int { return p.Solvers * p.Samples }

// trialOf returns the spec of a trial and remembers its individual.
func (p *plan) trialOf(in *individual, t Trial, label string, deal int) world.Spec {
	t.Prompt = in.Prompt
	p.asked = append(p.asked, asked{in, t})
	return p.spec(Episode{Trial: &t}, label, deal)
}

// spec returns the spec of an episode. Its params hold only what the episode needs: not the whole set of problems, and
// not what only the plan needs.
func (p *plan) spec(e Episode, label string, deal int) world.Spec {
	b, err := json.Marshal(struct {
		Asking
		Crossover map[string]float64 `json:"crossover"`
		Mutation  map[string]float64 `json:"mutation"`
		Episode   Episode            `json:"episode"`
	}{p.asking(), p.Crossover, p.Mutation, e})
	if err != nil {
		b = []byte("{}") // not reached: these are plain values that came from JSON
	}
	s := p.cell
	s.Params, s.Deal = b, deal
	if s.Cell = label; p.cell.Cell != "" {
		s.Cell = p.cell.Cell + ": " + label
	}
	return s
}
