// Package problem reads or generates problems with answers, and splits them into those that evolution sees and those
// that are held out.
//
// A question is in one part of a split only, even if a file repeats it with other white space. The same seed splits in the
// same way. Errors name the line of the file.
//
// Package checker checks answers.
package problem

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
)

// Problem is a question and its right answer.
type Problem struct {
	ID       string   `json:"id"`
	Question string   `json:"question"`
	Answer   string   `json:"answer"`
	Choices  []string `json:"choices,omitempty"` // of a question with several, in the order of their letters
}

// Set holds problems in three parts.
type Set struct {
	Train      []Problem `json:"train"`                // for evolution
	Validation []Problem `json:"validation,omitempty"` // for choosing the winner; may be empty
	Test       []Problem `json:"test"`                 // for measuring the winner
}

// Sizes are the numbers of problems of the parts.
type Sizes struct{ Train, Validation, Test int }

// Arithmetic generates a set of word problems.
func Arithmetic(seed uint64, sizes Sizes, easiest, hardest int) *Set {
	made := GenerateArithmetic(seed, sizes.Train+sizes.Validation+sizes.Test, easiest, hardest)
	all := make([]Problem, len(made))
	for i, p := range made {
		all[i] = Problem{ID: fmt.Sprintf("arithmetic-%d-%04d", p.Difficulty, i), Question: p.Question, Answer: strconv.Itoa(p.Answer)}
	}
	set, _ := Split(all, nil, sizes, seed) // cannot fail: there are enough problems
	return set
}

// Split draws the parts from all, or the test part from test if that is not empty. A question in both is only used for
// the test.
func Split(all, test []Problem, sizes Sizes, seed uint64) (*Set, error) {
	r := rand.New(rand.NewPCG(seed, 0x73706c6974))
	apart := len(test) > 0
	test = distinct(test, nil)
	all = distinct(all, test)
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	r.Shuffle(len(test), func(i, j int) { test[i], test[j] = test[j], test[i] })
	need := sizes.Train + sizes.Validation
	if !apart {
		need += sizes.Test
	}
	if len(all) < need {
		return nil, fmt.Errorf("%d different problems are too few for train %d, validation %d and test %d", len(all), sizes.Train, sizes.Validation, sizes.Test)
	}
	if apart && len(test) < sizes.Test {
		return nil, fmt.Errorf("%d different problems are too few for test %d", len(test), sizes.Test)
	}
	if !apart {
		test = all[sizes.Train+sizes.Validation:]
	}
	return &Set{
		Train:      all[:sizes.Train:sizes.Train],
		Validation: all[sizes.Train : sizes.Train+sizes.Validation : sizes.Train+sizes.Validation],
		Test:       test[:sizes.Test:sizes.Test],
	}, nil
}

// distinct leaves out repeated questions and those in others. It numbers problems without an id or with a duplicate id.
func distinct(all, others []Problem) []Problem {
	seen := map[string]bool{}
	for _, p := range others {
		seen[plain(p.Question)] = true
	}
	ids := map[string]bool{"": true}
	var out []Problem
	for i, p := range all {
		key := plain(p.Question)
		if seen[key] {
			continue
		}
		seen[key] = true
		if ids[p.ID] {
			p.ID = fmt.Sprintf("%s#%d", p.ID, i+1)
		}
		ids[p.ID] = true
		out = append(out, p)
	}
	return out
}

// plain returns a question in lower case with white space normalized.
func plain(question string) string {
	return strings.ToLower(strings.Join(strings.Fields(question), " "))
}
