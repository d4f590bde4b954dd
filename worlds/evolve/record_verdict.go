package evolve

import "fmt"

// Verdict is the result of an evolution.
type Verdict struct {
	Evolution   int          `json:"evolution,omitempty"`
	Stopped     Stop         `json:"stopped"`
	Generations []Generation `json:"generations"`
	Prompts     int          `json:"prompts"` // all that were bred
	Calls       int          `json:"calls"`   // of solvers, with the final test
	Bred        int          `json:"bred"`    // calls of the breeder
	Saved       int          `json:"saved"`   // calls that races saved
	Duplicates  int          `json:"duplicates"`

	Winner *Prompt `json:"winner,omitempty"` // nil if no prompt could be tried
	Parts  Parts   `json:"parts"`            // of the winner, on the training problems
	// Lineage is the winner and its ancestors, parents before children.
	Lineage   []Ancestor `json:"lineage,omitempty"`
	Operators []Operator `json:"operators,omitempty"`
	Test      []Tested   `json:"test,omitempty"`
	// Best is the name of the best baseline. Gain is how much more the winner solved, problem by problem.
	Best string    `json:"best_baseline,omitempty"`
	Gain *Estimate `json:"gain,omitempty"`
	// P is the probability of such a difference by chance alone, and Method is the test that computed it.
	P      *float64 `json:"p,omitempty"`
	Method string   `json:"method,omitempty"`
}

// Ancestor is a prompt in the lineage of the winner.
type Ancestor struct {
	Prompt
	Fitness  float64 `json:"fitness"`
	Accuracy float64 `json:"accuracy"`
	// Diff is the difference from the first parent, sentence by sentence.
	Diff string `json:"diff,omitempty"`
}

// Operator counts the results of one way to breed.
type Operator struct {
	Name     string `json:"name"`
	Made     int    `json:"made"`
	Finished int    `json:"finished"` // children that were not dropped in their race
	Better   int    `json:"better"`   // children that were fitter than every parent
}

// Tested is the result of one prompt in the final test.
type Tested struct {
	Name     string   `json:"name"`
	Prompt   int      `json:"prompt"`
	Text     string   `json:"text"`
	Accuracy Estimate `json:"accuracy"`
	Failed   int      `json:"failed,omitempty"` // problems without an answer
}

// Estimate is a number with its interval.
type Estimate struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
	N     int     `json:"n"`
}

// confidence is the confidence of the intervals of a verdict.
const confidence = 0.95

// String formats the estimate as 0.54 [0.42, 0.64].
func (e Estimate) String() string { return fmt.Sprintf("%.2f [%.2f, %.2f]", e.Value, e.Low, e.High) }

// Generation summarizes one generation. Its fitness is over all prompts with a result. A dropped prompt counts with the
// results it had when it was dropped.
type Generation struct {
	Number    int     `json:"number"`
	Best      float64 `json:"best"`
	Mean      float64 `json:"mean"`
	Worst     float64 `json:"worst"`
	Accuracy  float64 `json:"accuracy"` // of the best
	Diversity float64 `json:"diversity"`
	BestID    int     `json:"best_id"`

	Prompts    int `json:"prompts"`
	New        int `json:"new"`
	Dropped    int `json:"dropped"`    // new prompts that were dropped
	Duplicates int `json:"duplicates"` // prompts that were bred again and not tried again
	Calls      int `json:"calls"`      // of solvers
	Saved      int `json:"saved"`      // calls that races saved
	Bred       int `json:"bred"`       // calls of the breeder

	CrossoverRate float64 `json:"crossover_rate"`
	MutationRate  float64 `json:"mutation_rate"`
}

// Stop is the reason why an evolution stopped.
type Stop string

// The reasons to stop, in the order in which they are checked.
const (
	stopFailures    Stop = "failures" // no prompt could be tried
	stopTarget      Stop = "target_fitness"
	stopGenerations Stop = "max_generations"
	stopStagnation  Stop = "stagnation"
	stopDiversity   Stop = "diversity_loss"
	stopPlateau     Stop = "fitness_plateau"
	stopCalls       Stop = "max_calls"
)
