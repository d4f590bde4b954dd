package evolve

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"parley/world"
)

// Prompt is a prompt and its origin.
type Prompt struct {
	ID         int    `json:"id"`
	Text       string `json:"text"`
	Generation int    `json:"generation"`
	Island     int    `json:"island,omitempty"`
	// Operator is how it was made: seed, section+insert, reflect, …
	Operator string `json:"operator"`
	Parents  []int  `json:"parents,omitempty"`
	// Evolution distinguishes evolutions with the same params in one run.
	Evolution int `json:"evolution,omitempty"`
}

// The purposes of trials.
const (
	purposeRace       = "race"
	purposeValidation = "validation"
	purposeTest       = "test"
	purposeTransfer   = "transfer"
)

// trialRecord is the outcome's data of a trial.
type trialRecord struct {
	Prompt
	Purpose  string   `json:"purpose"`
	Round    int      `json:"round,omitempty"`
	Baseline string   `json:"baseline,omitempty"`
	Calls    int      `json:"calls"`
	Parts    Parts    `json:"parts"`
	Results  []Result `json:"results"`
}

// Result is the result of a prompt on one problem, over all solvers and samples. A failed call is neither right nor
// wrong: Asked less Failed is the number of answers.
type Result struct {
	Problem string `json:"problem"`
	Asked   int    `json:"asked"`
	Failed  int    `json:"failed,omitempty"`
	Correct int    `json:"correct"`
	Unread  int    `json:"unread,omitempty"` // texts in which no answer was found
	Cut     int    `json:"cut,omitempty"`    // texts that were cut off at the token limit
	// Length is the mean number of characters of all answers, and CorrectLength that of the right ones.
	Length        float64 `json:"length"`
	CorrectLength float64 `json:"correct_length,omitempty"`
	// Value is how good it was in episodes of a nested plan, and Episodes are these.
	Value    *float64 `json:"value,omitempty"`
	Episodes []int    `json:"episodes,omitempty"`
	// Got is the first wrong answer, and Said is the end of its text.
	Got  string `json:"got,omitempty"`
	Said string `json:"said,omitempty"`
}

// Score returns the share of right answers or how good it was, and whether there was an answer.
func (r Result) Score() (float64, bool) {
	if r.Value != nil {
		return *r.Value, true
	}
	if r.Asked <= r.Failed {
		return 0, false
	}
	return float64(r.Correct) / float64(r.Asked-r.Failed), true
}

// breedingRecord is the outcome's data of a breeding.
type breedingRecord struct {
	Operator string `json:"operator"`
	Parents  []int  `json:"parents"`
	Text     string `json:"text"`
}

// The labels of episodes. A label follows the cell of the evolution.
const (
	breedingLabel   = "breeding"
	validationLabel = "validation"
	verdictLabel    = "verdict"
)

// generationLabel returns the label of the trials of a generation.
func generationLabel(n int) string { return fmt.Sprintf("generation %d", n) }

// winnerName is the name of the winner in the final test.
const winnerName = "winner"

// testLabel returns the label of the tests of an entrant. It is the same for every winner, even for one that is also a
// baseline, because runs are compared by it.
func testLabel(entrant string) string {
	if strings.HasPrefix(entrant, winnerName+" = ") {
		entrant = winnerName
	}
	return "test, " + entrant
}

// readData returns the data of an outcome, and whether it could be read.
func readData[T any](o world.Outcome) (T, bool) {
	var v T
	raw, ok := o.Data.(json.RawMessage)
	return v, ok && json.Unmarshal(raw, &v) == nil
}

// Verdict is the result of an evolution.
type Verdict struct {
	// Measure is what evolved, if that is not the share of problems that are solved.
	Measure     *Measured    `json:"measure,omitempty"`
	Evolution   int          `json:"evolution,omitempty"`
	Stopped     Stop         `json:"stopped"`
	Generations []Generation `json:"generations"`
	Prompts     int          `json:"prompts"` // all that were bred
	Calls       int          `json:"calls"`   // of solvers, with the final test
	Bred        int          `json:"bred"`    // calls of the breeder
	Saved       int          `json:"saved"`   // calls that races saved
	Duplicates  int          `json:"duplicates"`

	Winner *Prompt `json:"winner,omitempty"` // nil if no prompt could be tried
	// Texts are the winner's texts by their paths in the nested plan.
	Texts map[string]string `json:"texts,omitempty"`
	Parts Parts             `json:"parts"` // of the winner, on the training problems
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
	// Transfer is how the winner and the best baseline did on other models.
	Transfer []Transferred `json:"transfer,omitempty"`
}

// Transferred is how the winner and the best baseline did on the test problems with another model.
type Transferred struct {
	Model    string    `json:"model"`
	Winner   Estimate  `json:"winner"`
	Baseline Estimate  `json:"baseline"`
	Gain     *Estimate `json:"gain,omitempty"`
}

// Measured is a measure of the nested plan. Nil: the share of problems that are solved.
type Measured struct {
	Score world.Measure `json:"score"`
	Lower bool          `json:"lower,omitempty"` // less is better
}

// name returns the name of the measure.
func (m *Measured) name() string {
	if m == nil {
		return "accuracy"
	}
	return m.Score.Name
}

func (m *Measured) bounds() world.Bounds {
	if m == nil {
		return world.Share()
	}
	return m.Score.Bounds
}

// value returns the value of the measure for a fitness, and the fitness for a value.
func (m *Measured) value(x float64) float64 {
	if m != nil && m.Lower {
		return 0 - x // not -x: the opposite of 0 is 0
	}
	return x
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

// Estimate is a number with its interval, which may have no ends: of a measure that can be anything, and was always the same.
type Estimate struct {
	Value, Low, High float64
	N                int
}

// estimateJSON is an Estimate as JSON, which has no infinite numbers.
type estimateJSON struct {
	Value float64  `json:"value"`
	Low   *float64 `json:"low,omitempty"`
	High  *float64 `json:"high,omitempty"`
	N     int      `json:"n"`
}

// MarshalJSON leaves out an end that is infinite.
func (e Estimate) MarshalJSON() ([]byte, error) {
	out := estimateJSON{Value: e.Value, Low: &e.Low, High: &e.High, N: e.N}
	if math.IsInf(e.Low, -1) {
		out.Low = nil
	}
	if math.IsInf(e.High, 1) {
		out.High = nil
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (e *Estimate) UnmarshalJSON(b []byte) error {
	var in estimateJSON
	err := json.Unmarshal(b, &in)
	*e = Estimate{Value: in.Value, Low: math.Inf(-1), High: math.Inf(1), N: in.N}
	if in.Low != nil {
		e.Low = *in.Low
	}
	if in.High != nil {
		e.High = *in.High
	}
	return err
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

// Fitness holds the params that decide how fit a prompt is.
type Fitness struct {
	By          string  `json:"by" doc:"weighted: the sum of the parts by weight, less a penalty for length; accuracy: that alone." oneof:"weighted,accuracy"`
	Accuracy    float64 `json:"accuracy" doc:"The weight of the share of problems that are solved." range:"0..1000000"`
	Consistency float64 `json:"consistency" doc:"The weight of answers of even length that can be read." range:"0..1000000"`
	Efficiency  float64 `json:"efficiency" doc:"The weight of right answers that are short." range:"0..1000000"`
	Diversity   float64 `json:"diversity" doc:"The weight of right answers that are not all of one length." range:"0..1000000"`
	FreeWords   int     `json:"free_words" doc:"How many words of a prompt cost nothing." range:"0"`
	WordPenalty float64 `json:"word_penalty" doc:"What each further word costs." range:"0..1000000"`
	MaxPenalty  float64 `json:"max_penalty" doc:"The most that length costs." range:"0..1000000"`
}

// Parts are the parts of a fitness. All except the penalty are from 0 to 1.
type Parts struct {
	Fitness     float64 `json:"fitness"`
	Accuracy    float64 `json:"accuracy"`
	Consistency float64 `json:"consistency"`
	Efficiency  float64 `json:"efficiency"`
	Diversity   float64 `json:"diversity"`
	Penalty     float64 `json:"penalty"`
	// Problems is the number of problems with an answer. The other parts are over these.
	Problems int `json:"problems"`
}

// Parts computes the fitness of a prompt from its results. Failed calls do not count, and neither do problems without
// an answer.
func (f Fitness) Parts(results []Result, prompt string) Parts {
	var p Parts
	var lengths, rights []float64
	read := 0.0
	for _, r := range results {
		x, ok := r.Score()
		if !ok {
			continue
		}
		p.Problems++
		p.Accuracy += x
		lengths = append(lengths, r.Length)
		read += 1 - float64(r.Unread)/float64(r.Asked-r.Failed)
		if r.Correct > 0 {
			rights = append(rights, r.CorrectLength)
		}
	}
	if p.Problems == 0 {
		return p
	}
	p.Accuracy /= float64(p.Problems)
	p.Consistency = 0.7*max(0, 1-variation(lengths)) + 0.3*read/float64(p.Problems)
	if len(rights) > 0 {
		p.Efficiency = efficiency(mean(rights))
		p.Diversity = min(1, max(0, 1-math.Abs(variation(rights)-0.3)/0.3))
	}
	p.Penalty = min(f.MaxPenalty, f.WordPenalty*float64(max(0, len(strings.Fields(prompt))-f.FreeWords)))
	p.Fitness = p.Accuracy
	if sum := f.Accuracy + f.Consistency + f.Efficiency + f.Diversity; f.By == "weighted" && sum > 0 {
		p.Fitness = max(0, (f.Accuracy*p.Accuracy+f.Consistency*p.Consistency+f.Efficiency*p.Efficiency+f.Diversity*p.Diversity)/sum-p.Penalty)
	}
	return p
}

// efficiency is 1 for right answers of up to 150 characters, and falls to 0.1 for longer ones.
func efficiency(length float64) float64 {
	if length <= 150 {
		return 1
	}
	return max(0.1, 1-(length-150)/1000)
}

// mean returns the mean of xs, or 0 without any.
func mean(xs []float64) float64 {
	sum := 0.0
	for _, x := range xs {
		sum += x
	}
	return sum / float64(max(1, len(xs)))
}

// variation returns the standard deviation divided by the mean.
func variation(xs []float64) float64 {
	m := mean(xs)
	if m == 0 || len(xs) < 2 {
		return 0
	}
	sum := 0.0
	for _, x := range xs {
		sum += (x - m) * (x - m)
	}
	return math.Sqrt(sum/float64(len(xs))) / m
}
