package allot

import "parley/llm"

// Sums are what a budget is divided into.
type Sums struct {
	// Limit is the budget, and Spent what is recorded as spent.
	Limit llm.Money `json:"budget"`
	Spent llm.Money `json:"spent"`
	// Allotted is by worker that is not lost. AtRisk is what lost workers had.
	Allotted map[string]llm.Money `json:"allotted"`
	AtRisk   llm.Money            `json:"at_risk"`
}

// Sums returns what the budget is divided into.
func (k *Keeper) Sums() Sums {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := Sums{Limit: k.limit, Spent: k.spent, Allotted: map[string]llm.Money{}}
	for name, w := range k.workers {
		switch {
		case w.lost:
			s.AtRisk = s.AtRisk.Plus(w.atStake())
		case !w.left:
			s.Allotted[name] = w.atStake()
		}
	}
	return s
}

// AllAllotted returns what all workers have that are not lost.
func (s *Sums) AllAllotted() (sum llm.Money) {
	for _, amount := range s.Allotted {
		sum = sum.Plus(amount)
	}
	return sum
}
