// Package problem is sets of problems with answers: read from files of several formats, or
// made up, and split into those that evolution sees and those that are held out.
//
// What it promises: a question stands in one part of a split only, however often and with
// whatever white space a file has it; the same seed splits the same way; what is wrong with
// a file is said with its line.
//
// It is not for checking answers: package checker does that.
package problem

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"parley/worlds/evolve/arithmetic"
)

// Problem is a question and what is right.
type Problem struct {
	ID       string   `json:"id"`
	Question string   `json:"question"`
	Answer   string   `json:"answer"`
	Choices  []string `json:"choices,omitempty"` // of a question with several, in the order of their letters
}

// Set is problems in three parts.
type Set struct {
	Train      []Problem `json:"train"`                // what evolution sees
	Validation []Problem `json:"validation,omitempty"` // what the winner is chosen by; may be empty
	Test       []Problem `json:"test"`                 // what the winner is measured by
}

// Sizes are how many problems each part wants.
type Sizes struct{ Train, Validation, Test int }

// Arithmetic makes a set of word problems.
func Arithmetic(seed uint64, sizes Sizes, easiest, hardest int) *Set {
	made := arithmetic.Generate(seed, sizes.Train+sizes.Validation+sizes.Test, easiest, hardest)
	all := make([]Problem, len(made))
	for i, p := range made {
		all[i] = Problem{ID: fmt.Sprintf("arithmetic-%d-%04d", p.Difficulty, i), Question: p.Question, Answer: strconv.Itoa(p.Answer)}
	}
	set, _ := Split(all, nil, sizes, seed) // there are as many as are wanted
	return set
}

// Split draws the parts from all, or the test from test where that is not empty. What
// stands in both is left to test.
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

// distinct leaves out questions that come again, or stand in others. Problems without an
// id, or with one that another has, are numbered.
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

// plain is a question by its words alone.
func plain(question string) string {
	return strings.ToLower(strings.Join(strings.Fields(question), " "))
}
