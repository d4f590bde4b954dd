package evolve

// numbers are the params that have their defaults from the preset.
type numbers struct {
	population, generations, elite, tournament, patience, train int
	crossover, mutation, target                                 float64
	blind                                                       bool // children are changed seeds: nothing is learnt
}

// presets lists the names of the presets.
func presets() []string {
	return []string{"quick", "standard", "thorough", "no_crossover", "no_mutation", "high_mutation", "large_population", "random_search"}
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
	set(&n.population, p.PopulationSize)
	set(&n.generations, p.MaxGenerations)
	set(&n.elite, p.EliteSize)
	set(&n.tournament, p.TournamentSize)
	set(&n.patience, p.Patience)
	set(&n.train, p.Problems.Train)
	set(&n.crossover, p.CrossoverRate)
	set(&n.mutation, p.MutationRate)
	set(&n.target, p.TargetFitness)
	return n
}

func set[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}
