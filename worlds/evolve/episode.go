package evolve

import (
	"encoding/json"
	"fmt"
	"strings"

	"parley/world"
	"parley/worlds/evolve/checker"
	"parley/worlds/evolve/problem"
)

// Episode is what one episode plays: one of these.
type Episode struct {
	Trial   *Trial   `json:"trial,omitempty"`
	Breed   *Breed   `json:"breed,omitempty"`
	Verdict *Verdict `json:"verdict,omitempty"`
}

// Asking is the params that a trial needs: how problems are asked and scored.
type Asking struct {
	Ask     string          `json:"ask"`
	Checker checker.Checker `json:"checker"`
	Solvers int             `json:"solvers"`
	Samples int             `json:"samples"`
	Fitness Fitness         `json:"fitness"`
}

func (p *Params) asking() Asking { return Asking{p.Ask, p.Checker, p.Solvers, p.Samples, p.Fitness} }

// Prompt is a prompt and where it comes from.
type Prompt struct {
	ID         int    `json:"id"`
	Text       string `json:"text"`
	Generation int    `json:"generation"`
	Island     int    `json:"island,omitempty"`
	// Operator is how it was made: seed, section+insert, reflect, …
	Operator string `json:"operator"`
	Parents  []int  `json:"parents,omitempty"`
	// Evolution tells several apart that are played beside each other with the same params.
	Evolution int `json:"evolution,omitempty"`
}

// What a trial is for.
const (
	Racing     = "race"
	Validating = "validation"
	Testing    = "test"
)

// Trial tries a prompt on problems.
type Trial struct {
	Prompt
	Purpose string `json:"purpose"`
	// Round is which part of the training problems it is, from 0.
	Round int `json:"round,omitempty"`
	// Baseline names what the prompt is in the final test: winner, seed 3, no prompt.
	Baseline string            `json:"baseline,omitempty"`
	Problems []problem.Problem `json:"problems"`
}

// Breed asks the breeder for a prompt.
type Breed struct {
	Operator string   `json:"operator"`
	Parents  []Prompt `json:"parents"`
	Cases    []Case   `json:"cases,omitempty"`
	Most     int      `json:"most"` // characters of the new prompt
}

// Case is a problem that went wrong.
type Case struct {
	Question string `json:"question"`
	Expected string `json:"expected"`
	Response string `json:"response"`
}

// TrialRecord is the outcome's data of a trial.
type TrialRecord struct {
	Prompt
	Purpose  string   `json:"purpose"`
	Round    int      `json:"round,omitempty"`
	Baseline string   `json:"baseline,omitempty"`
	Calls    int      `json:"calls"`
	Parts    Parts    `json:"parts"`
	Results  []Result `json:"results"`
}

// Result is how a prompt did on one problem, over all solvers and samples. Answered calls
// are Asked less Failed: a failed call is neither right nor wrong.
type Result struct {
	Problem string `json:"problem"`
	Asked   int    `json:"asked"`
	Failed  int    `json:"failed,omitempty"`
	Correct int    `json:"correct"`
	Unread  int    `json:"unread,omitempty"` // that held no answer
	Cut     int    `json:"cut,omitempty"`    // that were cut off at the most tokens allowed
	// Length is the mean number of characters of answers, and CorrectLength of right ones.
	Length        float64 `json:"length"`
	CorrectLength float64 `json:"correct_length,omitempty"`
	// Got and Said are the first wrong answer that was found, and the end of its text.
	Got  string `json:"got,omitempty"`
	Said string `json:"said,omitempty"`
}

// score is the share of answers that were right, if there were any.
func (r Result) score() (float64, bool) {
	if r.Asked <= r.Failed {
		return 0, false
	}
	return float64(r.Correct) / float64(r.Asked-r.Failed), true
}

// BreedRecord is the outcome's data of a breeding.
type BreedRecord struct {
	Operator string `json:"operator"`
	Parents  []int  `json:"parents"`
	Text     string `json:"text"`
}

// spec makes the spec of an episode. Its params hold what the episode needs and no more:
// neither the whole set of problems nor what only the plan needs.
func (p *plan) spec(e Episode, label string, deal int) world.Spec {
	b, err := json.Marshal(struct {
		Asking
		Crossover map[string]float64 `json:"crossover"`
		Mutation  map[string]float64 `json:"mutation"`
		Episode   Episode            `json:"episode"`
	}{p.asking(), p.Crossover, p.Mutation, e})
	if err != nil {
		b = []byte("{}") // not reached: plain values that came from JSON
	}
	s := p.cell
	s.Params, s.Deal = b, deal
	if s.Cell = label; p.cell.Cell != "" {
		s.Cell = p.cell.Cell + ": " + label
	}
	return s
}

// The labels of episodes, after that of the evolution's cell.
func generationLabel(n int) string { return fmt.Sprintf("generation %d", n) }

// testLabel is the same for every winner, also one that is a baseline too: runs are
// compared by it.
func testLabel(entrant string) string {
	if strings.HasPrefix(entrant, winning+" = ") {
		entrant = winning
	}
	return "test, " + entrant
}

const (
	breedingLabel   = "breeding"
	validationLabel = "validation"
	verdictLabel    = "verdict"
)

// read takes the data of an outcome.
func read[T any](o world.Outcome) (T, bool) {
	var v T
	raw, ok := o.Data.(json.RawMessage)
	return v, ok && json.Unmarshal(raw, &v) == nil
}
