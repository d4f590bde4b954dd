package evolve

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"parley/worlds/evolve/arithmetic"
	"parley/worlds/evolve/checker"
	"parley/worlds/evolve/genome"
	"parley/worlds/evolve/selection"
)

// check says what is wrong with params. Each line names the param.
func (p *Params) check() error {
	var c complaints
	n := p.numbers()
	c.oneOf("preset", p.Preset, presets())
	c.whole("population_size", n.population, 4, 1000)
	c.whole("max_generations", n.generations, 0, 1000)
	c.whole("tournament_size", n.tournament, 1, 100)
	c.whole("convergence_patience", n.patience, 0, 1000)
	c.whole("elite_size", n.elite, 0, max(0, n.population/max(1, p.Islands.Count)-2))
	c.part("crossover_rate", n.crossover)
	c.part("mutation_rate", n.mutation)
	c.part("target_fitness", n.target)
	c.between("selection_pressure", p.Pressure, 1, 2)
	c.oneOf("selection", p.Selection, selection.Methods())
	c.weights("crossover", p.Crossover, append(genome.Crossovers(), byModel))
	c.weights("mutation", p.Mutation, append(genome.Mutations(), modelMutations()...))
	c.whole("max_insertions", p.MaxInsertions, 1, 20)
	c.whole("min_genome_length", p.MinSpans, 0, 1000)
	c.whole("max_genome_length", p.MaxSpans, max(1, p.MinSpans), 1000)
	c.whole("max_prompt_length", p.MaxLength, 20, 100_000)
	c.whole("breeder_calls", p.BreederCalls, 0, math.MaxInt32)
	c.whole("failed_cases", p.FailedCases, 1, 20)
	c.whole("islands.count", p.Islands.Count, 1, min(50, n.population/4))
	c.whole("islands.migration_interval", p.Islands.Interval, 1, 1000)
	c.whole("islands.migrants", p.Islands.Migrants, 0, 100)
	c.whole("race.minibatch", p.Race.Minibatch, 0, math.MaxInt32)
	c.between("race.confidence", p.Race.Confidence, 0.51, 0.9999)
	c.part("race.keep", p.Race.Keep)
	c.between("improvement_threshold", p.Improvement, 0, 1)
	c.between("fitness_plateau_threshold", p.PlateauThreshold, 0, 1)
	c.whole("fitness_plateau_generations", p.PlateauGenerations, 0, 1000)
	c.part("diversity_threshold", p.DiversityThreshold)
	c.whole("max_calls", p.MaxCalls, 0, math.MaxInt32)
	c.whole("finalists", p.Finalists, 1, 50)
	c.whole("baselines.seeds", p.Baselines.Seeds, 0, 1000)
	p.checkTexts(&c, n.population)
	p.checkAsking(&c)
	p.checkProblems(&c, n.train)
	return errors.Join(c...)
}

func (p *Params) checkTexts(c *complaints, population int) {
	c.say(len(p.Seeds) > population, "seeds", "%d prompts are more than population_size, which is %d", len(p.Seeds), population)
	for i, s := range p.Seeds {
		c.say(strings.TrimSpace(s) == "", fmt.Sprintf("seeds[%d]", i), "is empty: a baseline of no prompt at all is measured anyway")
	}
	for i, s := range p.Phrases {
		c.say(strings.TrimSpace(s) == "", fmt.Sprintf("phrases[%d]", i), "is empty")
	}
}

func (p *Params) checkAsking(c *complaints) {
	c.say(!strings.Contains(p.Ask, question), "ask", "%q: want a text with %s in it", p.Ask, question)
	c.oneOf("checker.type", p.Checker.Type, checker.Types())
	if err := p.Checker.Check(); err != nil {
		*c = append(*c, fmt.Errorf("evolve: params.checker.%w", err))
	}
	c.whole("solvers", p.Solvers, 1, 20)
	c.whole("samples", p.Samples, 1, 100)
	f := p.Fitness
	c.oneOf("fitness.by", f.By, []string{"weighted", "accuracy"})
	for _, w := range []struct {
		name  string
		value float64
	}{
		{"accuracy", f.Accuracy}, {"consistency", f.Consistency}, {"efficiency", f.Efficiency}, {"diversity", f.Diversity},
		{"word_penalty", f.WordPenalty}, {"max_penalty", f.MaxPenalty},
	} {
		c.between("fitness."+w.name, w.value, 0, 1e6)
	}
	c.whole("fitness.free_words", f.FreeWords, 0, math.MaxInt32)
	unused := f
	unused.By = defaults().Fitness.By
	c.say(f.By == "accuracy" && unused != defaults().Fitness, "fitness", "weights and penalties have no effect by accuracy: set fitness.by to weighted")
	c.say(f.By == "weighted" && f.Accuracy+f.Consistency+f.Efficiency+f.Diversity <= 0, "fitness", "all weights are 0: give at least accuracy one")
}

func (p *Params) checkProblems(c *complaints, train int) {
	q := p.Problems
	c.oneOf("problems.source", q.Source, []string{"arithmetic", "file"})
	c.whole("problems.train", train, 2, 100_000)
	c.whole("problems.validation", q.Validation, 0, 100_000)
	c.whole("problems.test", q.Test, 2, 100_000)
	c.whole("problems.difficulty[0]", q.Difficulty[0], arithmetic.Easiest, arithmetic.Hardest)
	c.whole("problems.difficulty[1]", q.Difficulty[1], max(arithmetic.Easiest, q.Difficulty[0]), arithmetic.Hardest)
	c.say(q.Question == "" || q.Answer == "", "problems", "question and answer are what the file calls them: neither can be empty")
	if q.Source == "arithmetic" {
		c.say(q.File != "" || q.TestFile != "", "problems.file", "stands beside source: arithmetic: set source: file")
		return
	}
	switch {
	case q.Set == nil && q.File == "":
		c.say(true, "problems.file", "is missing: the file of the problems")
	case q.Set == nil:
		c.say(true, "problems.file", "%q was not read: a matrix cannot vary it", q.File)
	default:
		c.say(len(q.Set.Train) != train || len(q.Set.Validation) != q.Validation || len(q.Set.Test) != q.Test, "problems",
			"%d, %d and %d problems were read for train, validation and test, and %d, %d and %d are wanted: a matrix cannot vary how many",
			len(q.Set.Train), len(q.Set.Validation), len(q.Set.Test), train, q.Validation, q.Test)
	}
}

// complaints are what is wrong.
type complaints []error

func (c *complaints) say(wrong bool, param, format string, args ...any) {
	if wrong {
		*c = append(*c, fmt.Errorf("evolve: params.%s: %s", param, fmt.Sprintf(format, args...)))
	}
}

func (c *complaints) whole(param string, n, low, high int) {
	switch {
	case high == math.MaxInt32:
		c.say(n < low || n > high, param, "%d: want %d or more", n, low)
	default:
		c.say(n < low || n > high, param, "%d: want %d to %d", n, low, high)
	}
}

func (c *complaints) part(param string, x float64) { c.between(param, x, 0, 1) }

func (c *complaints) between(param string, x, low, high float64) {
	c.say(!(x >= low && x <= high), param, "%v: want %v to %v", x, low, high)
}

func (c *complaints) oneOf(param, is string, allowed []string) {
	c.say(!slices.Contains(allowed, is), param, "%q: want one of %s", is, strings.Join(allowed, ", "))
}

// weights checks the weights of operators: known ones, none below 0, not all 0.
func (c *complaints) weights(param string, w map[string]float64, allowed []string) {
	sum := 0.0
	for _, name := range slices.Sorted(maps.Keys(w)) {
		c.say(!slices.Contains(allowed, name), param, "there is no %q: want any of %s", name, strings.Join(allowed, ", "))
		c.say(!(w[name] >= 0) || w[name] > 1e6, param+"."+name, "%v: want a weight of 0 or more", w[name])
		sum += w[name]
	}
	c.say(!(sum > 0), param, "all weights are 0: to go without it, set the rate to 0")
}
