package evolve

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"parley/world"
	"parley/worlds/evolve/genome"
	"parley/worlds/evolve/problem"
)

// check returns all errors in the params. Each line names the param.
func (p *Params) check() error {
	c := paramErrors{world.ParamErrors{Kind: "evolve"}}
	n := p.numbers()
	c.OneOf("preset", p.Preset, presets())
	c.IntRange("population_size", n.population, 4, 1000)
	c.IntRange("max_generations", n.generations, 0, 1000)
	c.IntRange("tournament_size", n.tournament, 1, 100)
	c.IntRange("convergence_patience", n.patience, 0, 1000)
	each := n.population / max(1, p.Islands.Count) // prompts of an island
	c.addIf(n.population >= 4 && each >= 4 && (n.elite < 0 || n.elite > each-2), "elite_size", "%d: want 0 to %d", n.elite, each-2)
	c.Between("crossover_rate", n.crossover, 0, 1)
	c.Between("mutation_rate", n.mutation, 0, 1)
	c.Between("target_fitness", n.target, 0, 1)
	c.Between("selection_pressure", p.Pressure, 1, 2)
	c.OneOf("selection", p.Selection, genome.SelectionMethods())
	c.weights("crossover", p.Crossover, append(genome.Crossovers(), byModel))
	c.weights("mutation", p.Mutation, append(genome.Mutations(), modelMutations()...))
	c.IntRange("max_insertions", p.MaxInsertions, 1, 20)
	c.IntRange("min_genome_length", p.MinSpans, 0, 1000)
	c.IntRange("max_genome_length", p.MaxSpans, max(1, p.MinSpans), 1000)
	c.IntRange("max_prompt_length", p.MaxLength, 20, 100_000)
	c.IntRange("breeder_calls", p.BreederCalls, 0, math.MaxInt32)
	c.IntRange("failed_cases", p.FailedCases, 1, 20)
	c.IntRange("islands.count", p.Islands.Count, 1, min(50, max(1, n.population/4)))
	c.IntRange("islands.migration_interval", p.Islands.Interval, 1, 1000)
	c.IntRange("islands.migrants", p.Islands.Migrants, 0, 100)
	c.IntRange("race.minibatch", p.Race.Minibatch, 0, math.MaxInt32)
	c.Between("race.confidence", p.Race.Confidence, 0.51, 0.9999)
	c.Between("race.keep", p.Race.Keep, 0, 1)
	c.Between("improvement_threshold", p.Improvement, 0, 1)
	c.Between("fitness_plateau_threshold", p.PlateauThreshold, 0, 1)
	c.IntRange("fitness_plateau_generations", p.PlateauGenerations, 0, 1000)
	c.Between("diversity_threshold", p.DiversityThreshold, 0, 1)
	c.IntRange("max_calls", p.MaxCalls, 0, math.MaxInt32)
	c.IntRange("finalists", p.Finalists, 1, 50)
	c.IntRange("baselines.seeds", p.Baselines.Seeds, 0, 1000)
	p.checkTexts(&c, n.population)
	p.checkAsking(&c)
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
	c.addIf(!strings.Contains(p.Ask, questionHere), "ask", "%q: want a text with %s in it", p.Ask, questionHere)
	c.Braces("ask", p.Ask, questionHere, promptHere)
	c.Braces("checker.template", p.Checker.Template, problem.AnswerMark)
	c.OneOf("checker.type", p.Checker.Type, problem.CheckerTypes())
	if err := p.Checker.Check(); err != nil {
		c.Add(fmt.Errorf("evolve: params.checker.%w", err))
	}
	c.IntRange("solvers", p.Solvers, 1, 20)
	c.IntRange("samples", p.Samples, 1, 100)
	f := p.Fitness
	c.OneOf("fitness.by", f.By, []string{"weighted", "accuracy"})
	for _, w := range []struct {
		name  string
		value float64
	}{
		{"accuracy", f.Accuracy}, {"consistency", f.Consistency}, {"efficiency", f.Efficiency}, {"diversity", f.Diversity},
		{"word_penalty", f.WordPenalty}, {"max_penalty", f.MaxPenalty},
	} {
		c.Between("fitness."+w.name, w.value, 0, 1e6)
	}
	c.IntRange("fitness.free_words", f.FreeWords, 0, math.MaxInt32)
	weights, usual := f, definition{}.Defaults().Fitness
	weights.By = usual.By
	c.addIf(f.By == "accuracy" && weights != usual, "fitness", "weights and penalties have no effect with by: accuracy; set fitness.by to weighted")
	c.addIf(f.By == "weighted" && f.Accuracy+f.Consistency+f.Efficiency+f.Diversity <= 0, "fitness", "all weights are 0; set at least that of accuracy")
}

func (p *Params) checkProblems(c *paramErrors, train int) {
	q := p.Problems
	c.OneOf("problems.source", q.Source, []string{"arithmetic", "file"})
	c.IntRange("problems.train", train, 2, 100_000)
	c.IntRange("problems.validation", q.Validation, 0, 100_000)
	c.IntRange("problems.test", q.Test, 2, 100_000)
	c.IntRange("problems.difficulty[0]", q.Difficulty[0], problem.Easiest, problem.Hardest)
	c.IntRange("problems.difficulty[1]", q.Difficulty[1], max(problem.Easiest, q.Difficulty[0]), problem.Hardest)
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

// weights checks that operators are known, that no weight is below 0, and that one is above 0.
func (c *paramErrors) weights(param string, w map[string]float64, allowed []string) {
	sum := 0.0
	for _, name := range slices.Sorted(maps.Keys(w)) {
		c.addIf(!slices.Contains(allowed, name), param, "unknown operator %q; want any of %s", name, strings.Join(allowed, ", "))
		c.addIf(!(w[name] >= 0) || w[name] > 1e6, param+"."+name, "%v: want a weight of 0 or more", w[name])
		sum += w[name]
	}
	c.addIf(!(sum > 0), param, "all weights are 0; to turn it off, set its rate to 0")
}
