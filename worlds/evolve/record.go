// Part record is the data of an evolution: its prompts, the results of its trials, and its verdict, as run files
// store them.
//
// It also computes fitness, and names the episodes of an evolution. It plays nothing and shows nothing.

package evolve

import (
	"encoding/json"
	"fmt"
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
	recordRacing     = "race"
	recordValidating = "validation"
	recordTesting    = "test"
)

// recordTrial is the outcome's data of a trial.
type recordTrial struct {
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
	// Got is the first wrong answer, and Said is the end of its text.
	Got  string `json:"got,omitempty"`
	Said string `json:"said,omitempty"`
}

// Score returns the share of right answers, and whether there was an answer.
func (r Result) Score() (float64, bool) {
	if r.Asked <= r.Failed {
		return 0, false
	}
	return float64(r.Correct) / float64(r.Asked-r.Failed), true
}

// recordBreeding is the outcome's data of a breeding.
type recordBreeding struct {
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

// recordWinner is the name of the winner in the final test.
const recordWinner = "winner"

// testLabel returns the label of the tests of an entrant. It is the same for every winner, even for one that is also a
// baseline, because runs are compared by it.
func testLabel(entrant string) string {
	if strings.HasPrefix(entrant, recordWinner+" = ") {
		entrant = recordWinner
	}
	return "test, " + entrant
}

// readRecord returns the data of an outcome, and whether it could be read.
func readRecord[T any](o world.Outcome) (T, bool) {
	var v T
	raw, ok := o.Data.(json.RawMessage)
	return v, ok && json.Unmarshal(raw, &v) == nil
}
