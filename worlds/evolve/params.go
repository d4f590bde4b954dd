package evolve

import (
	"parley/worlds/evolve/genome"
	"parley/worlds/evolve/problem"
)

// Params are the params of an evolution in a plan file. Pointers have their defaults from the preset.
type Params struct {
	Preset   string          `json:"preset" doc:"Where the numbers come from that you leave out." oneof:"quick,standard,thorough,no_crossover,no_mutation,high_mutation,large_population,random_search"`
	Problems Problems        `json:"problems" doc:"What prompts are tried on."`
	Ask      string          `json:"ask" doc:"What a solver is asked. {question} is the problem and {prompt} the prompt; without {prompt}, that is the system message."`
	Checker  problem.Checker `json:"checker" doc:"How answers are checked."`
	Solvers  int             `json:"solvers" doc:"How many models solve each problem, 1 to 20: in the seats solver1, solver2 and so on. Fitness is over all of them."`
	Samples  int             `json:"samples" doc:"How often each problem is asked of each solver: 1 to 100."`
	Fitness  Fitness         `json:"fitness" doc:"What a prompt is judged by."`
	Seeds    []string        `json:"seeds" doc:"Prompts to begin with. Empty: a few plain ones that come with parley."`
	Phrases  []string        `json:"phrases" doc:"Sentences that mutations may put into prompts, besides those of the prompts themselves. Empty: a few that come with parley."`

	PopulationSize *int     `json:"population_size,omitempty" doc:"How many prompts a generation has: 4 to 1000."`
	MaxGenerations *int     `json:"max_generations,omitempty" doc:"How many generations there are at most after the first: 0 to 1000."`
	CrossoverRate  *float64 `json:"crossover_rate,omitempty" doc:"How often a child has two parents, from 0 to 1."`
	MutationRate   *float64 `json:"mutation_rate,omitempty" doc:"How often a child is changed, from 0 to 1."`
	EliteSize      *int     `json:"elite_size,omitempty" doc:"How many of the best live on as they are: 0 to two less than an island has."`
	TournamentSize *int     `json:"tournament_size,omitempty" doc:"How many meet in a tournament: 1 to 100."`
	TargetFitness  *float64 `json:"target_fitness,omitempty" doc:"The fitness at which to stop, from 0 to 1. 0: none."`
	Patience       *int     `json:"convergence_patience,omitempty" doc:"Stop after so many generations without improvement: 0 to 1000. 0: never."`

	Selection     string             `json:"selection" doc:"How parents are picked." oneof:"tournament,roulette,rank,universal,truncation,pareto,random"`
	Pressure      float64            `json:"selection_pressure" doc:"How much selection by rank favours the best: 1 (not at all) to 2."`
	Crossover     map[string]float64 `json:"crossover" doc:"How often each way to cross two prompts is taken, by weight: section, single_point, two_point, uniform; and model, in which the breeder writes the child."`
	Mutation      map[string]float64 `json:"mutation" doc:"How often each way to change a prompt is taken, by weight: edit, insert, delete, swap, duplicate; and by the breeder: rewrite, reflect (from what went wrong), difference (from how other prompts differ)."`
	MaxInsertions int                `json:"max_insertions" doc:"The most sentences that one insertion adds: 1 to 20."`
	MinSpans      int                `json:"min_genome_length" doc:"The fewest sentences that deletion leaves of a prompt: 0 to 1000."`
	MaxSpans      int                `json:"max_genome_length" doc:"The most sentences that insertion and duplication make of a prompt: up to 1000."`
	MaxLength     int                `json:"max_prompt_length" doc:"The most characters of a prompt that the breeder writes: 20 to 100000."`
	BreederCalls  int                `json:"breeder_calls" doc:"The most calls of the breeder in all. After them, prompts are crossed and changed without it. 0: no bound."`
	FailedCases   int                `json:"failed_cases" doc:"How many problems that went wrong a reflection is shown: 1 to 20."`
	Adaptive      bool               `json:"adaptive" doc:"Whether rates of crossover and mutation adapt to diversity and progress."`
	Islands       Islands            `json:"islands" doc:"Populations that breed apart."`
	Race          Race               `json:"race" doc:"How trials of prompts that fall behind are cut short."`

	Improvement        float64 `json:"improvement_threshold" doc:"How much fitness must rise to count as an improvement, from 0 to 1."`
	PlateauThreshold   float64 `json:"fitness_plateau_threshold" doc:"A change of the best fitness that is smaller than this counts as no change, from 0 to 1."`
	PlateauGenerations int     `json:"fitness_plateau_generations" doc:"Stop after so many generations without any change: 0 to 1000. 0: never."`
	DiversityThreshold float64 `json:"diversity_threshold" doc:"Stop when prompts differ less than this, from 0 to 1."`
	MaxCalls           int     `json:"max_calls" doc:"The most calls of solvers, with those of the final test set aside. 0: no bound."`

	Finalists int       `json:"finalists" doc:"How many of the best are tried on the validation problems, to choose the winner: 1 to 50."`
	Baselines Baselines `json:"baselines" doc:"What the winner is measured beside in the final test."`

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
	Train      *int         `json:"train,omitempty" doc:"How many problems prompts are tried on: 2 to 100000. All generations see the same."`
	Validation int          `json:"validation" doc:"How many more the winner is chosen by among the finalists. 0: it is the fittest."`
	Test       int          `json:"test" doc:"How many more the winner is measured by in the end: 2 to 100000. Evolution never sees them."`
	Seed       uint64       `json:"seed" doc:"What the choice of problems depends on: not the seed of the plan, so that runs can be compared on the same problems."`
	Difficulty [2]int       `json:"difficulty" doc:"The least and the most steps of a problem of the source arithmetic: 1 to 8."`
	Set        *problem.Set `json:"set,omitempty" doc:"The problems themselves: read from the file when the plan is, and recorded with the run."`
}

// Islands are populations that breed apart.
type Islands struct {
	Count    int `json:"count" doc:"How many populations there are: 1 to 50, with at least 4 prompts each."`
	Interval int `json:"migration_interval" doc:"After how many generations the best of each go to the next: 1 to 1000."`
	Migrants int `json:"migrants" doc:"How many go at a time: 0 to 100."`
}

// Race holds the params of races.
type Race struct {
	Minibatch  int     `json:"minibatch" doc:"How many problems a new prompt is tried on first. Then as many more as it was tried on so far, until it has seen all. 0: all at once."`
	Confidence float64 `json:"confidence" doc:"How sure it must be that a prompt is behind, to drop it: 0.51 to 0.9999."`
	Keep       float64 `json:"keep" doc:"What share of the population is never dropped, from 0 to 1: a prompt is behind where it is behind the last of these."`
}

// Baselines are the prompts that the winner is compared with.
type Baselines struct {
	Seeds int      `json:"seeds" doc:"How many of the prompts to begin with, the fittest first. 0: none."`
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
		Crossover:     map[string]float64{"section": 1, "single_point": 1, "two_point": 1, "uniform": 1, byModel: 0},
		Mutation:      map[string]float64{"edit": 2, "insert": 2, "delete": 1, "swap": 0.5, "duplicate": 0.2, rewrite: 0, playReflect: 0, difference: 0},
		MaxInsertions: 2, MinSpans: 1, MaxSpans: 16, MaxLength: 4000, FailedCases: 3, Adaptive: true,
		Islands: Islands{Count: 1, Interval: 5, Migrants: 2}, Race: Race{Minibatch: 10, Confidence: 0.85, Keep: 0.2},
		Improvement: 0.01, PlateauThreshold: 0.001, PlateauGenerations: 10, DiversityThreshold: 0.05,
		Finalists: 5, Baselines: Baselines{Seeds: 5, Texts: []string{"", "Think step by step."}},
	}
}

// seeds returns the prompts to begin with.
func (p *Params) seeds() []string {
	if len(p.Seeds) > 0 {
		return p.Seeds
	}
	return genome.Seeds()
}

// phrases returns the sentences that mutations may insert.
func (p *Params) phrases() []genome.Span {
	if len(p.Phrases) > 0 {
		return genome.Of(p.Phrases...)
	}
	return genome.Phrases()
}

// set returns the problems for training, validation and test.
func (p *Params) set() *problem.Set {
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
	return p.Crossover[byModel] > 0
}

// asking returns the params that a trial needs.
func (p *Params) asking() Asking {
	return Asking{Ask: p.Ask, Checker: p.Checker, Solvers: p.Solvers, Samples: p.Samples, Fitness: p.Fitness}
}
