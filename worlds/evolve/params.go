package evolve

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"parley/world"
	"parley/worlds/evolve/genome"
	"parley/worlds/evolve/problem"
)

// Params are the params of an evolution in a plan file. Pointers have their defaults from the preset.
type Params struct {
	Preset   string          `json:"preset" doc:"Where the numbers come from that you leave out." oneof:"quick,standard,thorough,no_crossover,no_mutation,high_mutation,large_population,random_search"`
	Problems Problems        `json:"problems" doc:"What prompts are tried on."`
	Ask      string          `json:"ask" doc:"What a solver is asked. {question} is the problem and {prompt} the prompt; without {prompt}, that is the system message."`
	Checker  problem.Checker `json:"checker" doc:"How answers are checked."`
	Solvers  int             `json:"solvers" doc:"How many models solve each problem: in the seats solver1, solver2 and so on. Fitness is over all of them." range:"1..20"`
	Samples  int             `json:"samples" doc:"How often each problem is asked of each solver." range:"1..100"`
	Fitness  Fitness         `json:"fitness" doc:"What a prompt is judged by."`
	Seeds    []string        `json:"seeds" doc:"Prompts to begin with. Empty: a few plain ones that come with parley. With play, the text of the plan is one more, and empty means that there is no other."`
	Phrases  []string        `json:"phrases" doc:"Sentences that mutations may put into prompts, besides those of the prompts themselves. Empty: a few that come with parley; with play, none."`

	PopulationSize *int     `json:"population_size,omitempty" doc:"How many prompts a generation has." range:"4..1000"`
	MaxGenerations *int     `json:"max_generations,omitempty" doc:"How many generations there are at most after the first." range:"0..1000"`
	CrossoverRate  *float64 `json:"crossover_rate,omitempty" doc:"How often a child has two parents." range:"0..1"`
	MutationRate   *float64 `json:"mutation_rate,omitempty" doc:"How often a child is changed." range:"0..1"`
	EliteSize      *int     `json:"elite_size,omitempty" doc:"How many of the best live on as they are: 0 to two less than an island has."`
	TournamentSize *int     `json:"tournament_size,omitempty" doc:"How many meet in a tournament." range:"1..100"`
	TargetFitness  *float64 `json:"target_fitness,omitempty" doc:"The fitness at which to stop, from 0 to 1. 0: none."`
	Patience       *int     `json:"convergence_patience,omitempty" doc:"Stop after so many generations without improvement. 0: never." range:"0..1000"`

	Selection     string             `json:"selection" doc:"How parents are picked." oneof:"tournament,roulette,rank,universal,truncation,pareto,random"`
	Pressure      float64            `json:"selection_pressure" doc:"How much selection by rank favours the best. 1: not at all." range:"1..2"`
	Crossover     map[string]float64 `json:"crossover" doc:"How often each way to cross two prompts is taken, by weight: section, single_point, two_point, uniform; and model, in which the breeder writes the child." range:"0..1000000"`
	Mutation      map[string]float64 `json:"mutation" doc:"How often each way to change a prompt is taken, by weight: edit, insert, delete, swap, duplicate; and by the breeder: rewrite, reflect (from what went wrong), difference (from how other prompts differ)." range:"0..1000000"`
	MaxInsertions int                `json:"max_insertions" doc:"The most sentences that one insertion adds." range:"1..20"`
	MinSpans      int                `json:"min_genome_length" doc:"The fewest sentences that deletion leaves of a prompt." range:"0..1000"`
	MaxSpans      int                `json:"max_genome_length" doc:"The most sentences that insertion and duplication make of a prompt." range:"1..1000"`
	MaxLength     int                `json:"max_prompt_length" doc:"The most characters of a prompt that the breeder writes." range:"20..100000"`
	BreederCalls  int                `json:"breeder_calls" doc:"The most calls of the breeder in all. After them, prompts are crossed and changed without it. 0: no bound." range:"0"`
	FailedCases   int                `json:"failed_cases" doc:"How many problems that went wrong a reflection is shown." range:"1..20"`
	Adaptive      bool               `json:"adaptive" doc:"Whether rates of crossover and mutation adapt to diversity and progress."`
	Islands       Islands            `json:"islands" doc:"Populations that breed apart."`
	Race          Race               `json:"race" doc:"How trials of prompts that fall behind are cut short."`

	Improvement        float64 `json:"improvement_threshold" doc:"How much fitness must rise to count as an improvement." range:"0..1000000"`
	PlateauThreshold   float64 `json:"fitness_plateau_threshold" doc:"A change of the best fitness that is smaller than this counts as no change." range:"0..1000000"`
	PlateauGenerations int     `json:"fitness_plateau_generations" doc:"Stop after so many generations without any change. 0: never." range:"0..1000"`
	DiversityThreshold float64 `json:"diversity_threshold" doc:"Stop when prompts differ less than this." range:"0..1"`
	MaxCalls           int     `json:"max_calls" doc:"The most calls of solvers or, with play, episodes, with those of the final test set aside. 0: no bound." range:"0"`

	Finalists int       `json:"finalists" doc:"How many of the best are tried on the validation problems, to choose the winner." range:"1..50"`
	Baselines Baselines `json:"baselines" doc:"What the winner is measured beside in the final test."`

	Transfer []string          `json:"transfer,omitempty" doc:"Models, as provider/model, on which the winner and the best baseline are tried too, on the test problems."`
	Play     string            `json:"play,omitempty" doc:"A plan file, from this one's folder, whose texts evolve. Its deals take the place of problems, and its episodes are the trials."`
	Change   []string          `json:"change,omitempty" doc:"With play: the paths of the texts in that plan that evolve, as agents.quiet.system or params.persona.first. [*] stands for every item of a list."`
	Maximize string            `json:"maximize,omitempty" doc:"With play: the measure of that kind that is to be high."`
	Minimize string            `json:"minimize,omitempty" doc:"With play: the measure of that kind that is to be low, instead of maximize."`
	Seat     string            `json:"seat,omitempty" doc:"With play: the seat whose measure counts. Empty: those of the agents that change names."`
	Split    Split             `json:"split" doc:"With play: how many deals there are for what."`
	Nested   *world.NestedPlan `json:"nested,omitempty" doc:"With play: the plan itself, read from the file when this plan is, and recorded with the run."`

	Episode *Episode `json:"episode,omitempty" doc:"What one episode plays: made by the evolution itself."`
}

// Problems selects the problems.
type Problems struct {
	Source     string       `json:"source" doc:"arithmetic: word problems that come with parley; file: your own." oneof:"arithmetic,file"`
	File       string       `json:"file" doc:"A file of problems beside the plan file, .jsonl, .json, .csv or .yaml. Files in the form of GSM8K can be used as they are."`
	TestFile   string       `json:"test_file" doc:"A file to take the test problems from. Empty: from file too."`
	Question   string       `json:"question" doc:"What the file calls a question."`
	Answer     string       `json:"answer" doc:"What the file calls an answer. Of an answer with #### in it, what comes after counts."`
	ID         string       `json:"id" doc:"What the file calls an id, where it has one."`
	Choices    string       `json:"choices" doc:"What the file calls the list of choices, where it has one."`
	Train      *int         `json:"train,omitempty" doc:"How many problems prompts are tried on. All generations see the same." range:"2..100000"`
	Validation int          `json:"validation" doc:"How many more the winner is chosen by among the finalists. 0: it is the fittest." range:"0..100000"`
	Test       int          `json:"test" doc:"How many more the winner is measured by in the end. Evolution never sees them." range:"2..100000"`
	Seed       uint64       `json:"seed" doc:"What the choice of problems depends on: not the seed of the plan, so that runs can be compared on the same problems."`
	Difficulty [2]int       `json:"difficulty" doc:"The least and the most steps of a problem of the source arithmetic." range:"1..8"`
	Set        *problem.Set `json:"set,omitempty" doc:"The problems themselves: read from the file when the plan is, and recorded with the run."`
}

// Islands are populations that breed apart.
type Islands struct {
	Count    int `json:"count" doc:"How many populations there are, with at least 4 prompts each." range:"1..50"`
	Interval int `json:"migration_interval" doc:"After how many generations the best of each go to the next." range:"1..1000"`
	Migrants int `json:"migrants" doc:"How many go at a time." range:"0..100"`
}

// Race holds the params of races.
type Race struct {
	Minibatch  int     `json:"minibatch" doc:"How many problems a new prompt is tried on first. Then as many more as it was tried on so far, until it has seen all. 0: all at once." range:"0"`
	Confidence float64 `json:"confidence" doc:"How sure it must be that a prompt is behind, to drop it." range:"0.51..0.9999"`
	Keep       float64 `json:"keep" doc:"What share of the population is never dropped: a prompt is behind where it is behind the last of these." range:"0..1"`
}

// Baselines are the prompts that the winner is compared with.
type Baselines struct {
	Seeds int      `json:"seeds" doc:"How many of the prompts to begin with, the fittest first. 0: none." range:"0..1000"`
	Texts []string `json:"texts" doc:"Prompts to measure; an empty one is no prompt at all."`
}

// Defaults returns the params of an evolution on arithmetic with the preset standard.
func (definition) Defaults() *Params {
	return &Params{
		Preset: "standard",
		Problems: Problems{
			Source: "arithmetic", Question: "question", Answer: "answer", ID: "id", Choices: "choices", Test: 100, Seed: 1, Difficulty: [2]int{2, 6},
		},
		Ask: "{question}", Checker: problem.DefaultChecker(), Solvers: 1, Samples: 1,
		Fitness: Fitness{By: "accuracy", Accuracy: 0.7, Consistency: 0.15, Efficiency: 0.1, Diversity: 0.05, FreeWords: 30, WordPenalty: 0.01, MaxPenalty: 0.5},
		Seeds:   []string{}, Phrases: []string{},
		Selection: "tournament", Pressure: 1.5,
		Crossover:     map[string]float64{"section": 1, "single_point": 1, "two_point": 1, "uniform": 1, crossByModel: 0},
		Mutation:      map[string]float64{"edit": 2, "insert": 2, "delete": 1, "swap": 0.5, "duplicate": 0.2, mutateRewrite: 0, mutateReflect: 0, mutateDifference: 0},
		MaxInsertions: 2, MinSpans: 1, MaxSpans: 16, MaxLength: 4000, FailedCases: 3, Adaptive: true,
		Islands: Islands{Count: 1, Interval: 5, Migrants: 2}, Race: Race{Minibatch: 10, Confidence: 0.85, Keep: 0.2},
		Improvement: 0.01, PlateauThreshold: 0.001, PlateauGenerations: 10, DiversityThreshold: 0.05,
		Split:     Split{Train: 60, Validation: 40, Test: 100},
		Finalists: 5, Baselines: Baselines{Seeds: 5, Texts: []string{"", "Think step by step."}},
	}
}

// seeds returns the prompts to begin with.
func (p *Params) seeds() []string {
	if len(p.Seeds) > 0 || p.Play != "" {
		return p.Seeds
	}
	return genome.Seeds()
}

// phrases returns the sentences that mutations may insert.
func (p *Params) phrases() []genome.Span {
	if len(p.Phrases) > 0 || p.Play != "" {
		return genome.FromTexts(p.Phrases...)
	}
	return genome.Phrases()
}

// problemSet returns the problems for training, validation and test.
func (p *Params) problemSet() *problem.Set {
	if s := p.Problems.Set; s != nil {
		return s
	}
	return problem.Arithmetic(p.Problems.Seed, p.sizes(), p.Problems.Difficulty[0], p.Problems.Difficulty[1])
}

func (p *Params) sizes() problem.Sizes {
	return problem.Sizes{Train: p.numbers().train, Validation: p.Problems.Validation, Test: p.Problems.Test}
}

// breeds reports whether a model writes prompts.
func (p *Params) breeds() bool {
	for _, op := range modelMutations() {
		if p.Mutation[op] > 0 {
			return true
		}
	}
	return p.Crossover[crossByModel] > 0
}

// asking returns the params that a trial needs.
func (p *Params) asking() asking {
	return asking{Ask: p.Ask, Checker: p.Checker, Solvers: p.Solvers, Samples: p.Samples, Fitness: p.Fitness}
}

// numbers are the params that have their defaults from the preset.
type numbers struct {
	population, generations, elite, tournament, patience, train int
	crossover, mutation, target                                 float64
	blind                                                       bool // children are changed seeds: nothing is learnt
}

// preset returns the numbers of a preset. Each preset is a change of standard.
func preset(name string) numbers {
	n := numbers{population: 50, generations: 100, elite: 5, tournament: 3, patience: 20, train: 100, crossover: 0.8, mutation: 0.5, target: 0.85}
	switch name {
	case "quick":
		n.population, n.generations, n.elite, n.train, n.patience, n.target = 12, 15, 2, 40, 6, 0.95
	case "thorough":
		n.population, n.generations, n.train, n.target, n.patience = 100, 200, 200, 0.9, 30
	case "no_crossover":
		n.crossover, n.mutation = 0, 0.5
	case "no_mutation":
		n.crossover, n.mutation = 0.9, 0
	case "high_mutation":
		n.mutation = 0.8
	case "large_population":
		n.population, n.generations, n.elite = 150, 50, 15
	case "random_search":
		n.crossover, n.mutation, n.tournament, n.elite, n.blind = 0, 1, 1, 0, true
	}
	return n
}

// numbers returns the numbers of the preset, replaced by those that the plan file sets.
func (p *Params) numbers() numbers {
	n := preset(p.Preset)
	override(&n.population, p.PopulationSize)
	override(&n.generations, p.MaxGenerations)
	override(&n.elite, p.EliteSize)
	override(&n.tournament, p.TournamentSize)
	override(&n.patience, p.Patience)
	override(&n.train, p.Problems.Train)
	override(&n.crossover, p.CrossoverRate)
	override(&n.mutation, p.MutationRate)
	if p.Play != "" {
		n.train, n.target = p.Split.Train, 0 // a measure may be any number
	}
	override(&n.target, p.TargetFitness)
	return n
}

func override[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

// check returns all errors in the params. Each line names the param.
func (p *Params) check() error {
	c := paramErrors{world.ParamErrors{Kind: "evolve"}}
	n := p.numbers()
	each := n.population / max(1, p.Islands.Count) // prompts of an island
	c.addIf(each >= 4 && (n.elite < 0 || n.elite > each-2), "elite_size", "%d: want 0 to %d", n.elite, each-2)
	c.addIf(p.Play == "" && !(n.target >= 0 && n.target <= 1), "target_fitness", "%v: want 0 to 1", n.target)
	c.weights("crossover", p.Crossover, append(genome.Crossovers(), crossByModel))
	c.weights("mutation", p.Mutation, append(genome.Mutations(), modelMutations()...))
	c.IntRange("max_genome_length", p.MaxSpans, max(1, p.MinSpans), 1000)
	c.IntRange("islands.count", p.Islands.Count, 1, n.population/4)
	for i, model := range p.Transfer {
		at := fmt.Sprintf("transfer[%d]", i)
		c.addIf(!strings.Contains(model, "/"), at, "%.80q: want provider/model", model)
		c.addIf(slices.Contains(p.Transfer[:i], model), at, "%.80q is listed twice", model)
	}
	p.checkTexts(&c, n.population)
	p.checkAsking(&c)
	if p.Play != "" {
		p.checkNested(&c)
		return c.Err()
	}
	c.addIf(len(p.Change) > 0 || p.Maximize != "" || p.Minimize != "" || p.Seat != "", "play", "is missing: change, maximize, minimize and seat are about the plan that it names")
	p.checkProblems(&c, n.train)
	return c.Err()
}

func (p *Params) checkTexts(c *paramErrors, population int) {
	c.addIf(len(p.Seeds) > population, "seeds", "%d prompts are more than population_size, which is %d", len(p.Seeds), population)
	for i, s := range p.Seeds {
		c.addIf(strings.TrimSpace(s) == "", fmt.Sprintf("seeds[%d]", i), "is empty; remove it: the final test has a baseline without a prompt anyway")
	}
	for i, s := range p.Phrases {
		c.addIf(strings.TrimSpace(s) == "", fmt.Sprintf("phrases[%d]", i), "is empty")
	}
}

func (p *Params) checkAsking(c *paramErrors) {
	c.addIf(!strings.Contains(p.Ask, questionPlaceholder), "ask", "%q: want a text with %s in it", p.Ask, questionPlaceholder)
	c.Braces("ask", p.Ask, questionPlaceholder, promptPlaceholder)
	c.Braces("checker.template", p.Checker.Template, problem.AnswerMark)
	if err := p.Checker.Check(); err != nil {
		c.Add(fmt.Errorf("evolve: params.checker.%w", err))
	}
	f := p.Fitness
	weights, usual := f, definition{}.Defaults().Fitness
	weights.By = usual.By
	c.addIf(f.By == "accuracy" && weights != usual, "fitness", "weights and penalties have no effect with by: accuracy; set fitness.by to weighted")
	c.addIf(f.By == "weighted" && f.Accuracy+f.Consistency+f.Efficiency+f.Diversity <= 0, "fitness", "all weights are 0; set at least that of accuracy")
}

func (p *Params) checkProblems(c *paramErrors, train int) {
	q := p.Problems
	c.IntRange("problems.difficulty[1]", q.Difficulty[1], q.Difficulty[0], problem.Hardest)
	c.addIf(q.Question == "" || q.Answer == "", "problems", "question and answer are the names of fields in the file; neither can be empty")
	if q.Source == "arithmetic" {
		c.addIf(q.File != "" || q.TestFile != "", "problems.file", "needs source: file, and source is arithmetic")
		return
	}
	switch {
	case q.Set == nil && q.File == "":
		c.addIf(true, "problems.file", "is missing; want the name of a file with problems")
	case q.Set == nil:
		c.Addf("problems.file", "%q %w: a matrix cannot vary it", q.File, world.ErrUnread)
	default:
		c.addIf(len(q.Set.Train) != train || len(q.Set.Validation) != q.Validation || len(q.Set.Test) != q.Test, "problems",
			"%d, %d and %d problems were read for train, validation and test, want %d, %d and %d; a matrix cannot vary these numbers",
			len(q.Set.Train), len(q.Set.Validation), len(q.Set.Test), train, q.Validation, q.Test)
	}
}

// paramErrors collects errors.
type paramErrors struct{ world.ParamErrors }

// addIf adds an error if wrong is true.
func (c *paramErrors) addIf(wrong bool, param, format string, args ...any) {
	if wrong {
		c.Addf(param, format, args...)
	}
}

// weights checks that operators are known, and that a weight is above 0.
func (c *paramErrors) weights(param string, w map[string]float64, allowed []string) {
	sum := 0.0
	for _, name := range slices.Sorted(maps.Keys(w)) {
		c.addIf(!slices.Contains(allowed, name), param, "unknown operator %q; want any of %s", name, strings.Join(allowed, ", "))
		sum += w[name]
	}
	c.addIf(!(sum > 0), param, "all weights are 0; to turn it off, set its rate to 0")
}

// Load reads the plan that is played, or the files of problems, of which it keeps those that are used.
func (definition) Load(p *Params, files world.Files) ([]string, error) {
	if p.Play != "" {
		return nil, p.loadNested(files)
	}
	q := &p.Problems
	if q.Source != "file" || q.File == "" {
		return nil, nil // check reports what is missing
	}
	if q.Set != nil {
		return nil, errors.New("evolve: params.problems.set: cannot be combined with file; remove one of them")
	}
	fields := problem.Fields{Question: q.Question, Answer: q.Answer, ID: q.ID, Choices: q.Choices}
	all, err := problem.Read(files, q.File, fields)
	if err != nil {
		return nil, withParam("file", err)
	}
	var test []problem.Problem
	if q.TestFile != "" {
		if test, err = problem.Read(files, q.TestFile, fields); err != nil {
			return nil, withParam("test_file", err)
		}
	}
	set, err := problem.Split(all, test, p.sizes(), q.Seed)
	if err != nil {
		return nil, withParam("file", fmt.Errorf("%s: %w", q.File, err))
	}
	q.Set = set
	return nil, p.checkAnswers(set)
}

// joinedError is an error that joins several, as errors.Join does.
type joinedError interface{ Unwrap() []error }

// withParam adds the name of the param to each joined error. Errors that show a position themselves are unchanged.
func withParam(param string, err error) error {
	if many, ok := err.(joinedError); ok {
		var all []error
		for _, one := range many.Unwrap() {
			all = append(all, withParam(param, one))
		}
		return errors.Join(all...)
	}
	if strings.Contains(err.Error(), "\n") {
		return err // it shows the position
	}
	return fmt.Errorf("evolve: params.problems.%s: %w", param, err)
}

// checkAnswers checks that the checker can accept every expected answer.
func (p *Params) checkAnswers(set *problem.Set) error {
	const maxFaults = 5
	var faults []error
	for _, part := range [][]problem.Problem{set.Train, set.Validation, set.Test} {
		for _, one := range part {
			if err := p.Checker.Fits(one); err != nil && len(faults) < maxFaults {
				faults = append(faults, fmt.Errorf("evolve: params.checker.type: %w", err))
			}
		}
	}
	return errors.Join(faults...)
}
