// Part play plays the episodes of an evolution: a trial of a prompt, a breeding, and the verdict.
//
// An episode needs only its own params. What is played next is up to the plan in package evolve.

package evolve

import (
	"errors"
	"fmt"

	"parley/world"
	"parley/worlds/evolve/problem"
)

// The seats: the solver (solver1, solver2 and so on if there are several), the model that writes new prompts, and the
// judge of answers.
const (
	playSolver  = "solver"
	playBreeder = "breeder"
	playJudge   = "judge"
)

// solverSeats lists the seats of n solvers.
func solverSeats(n int) []string {
	if n == 1 {
		return []string{playSolver}
	}
	var all []string
	for i := range n {
		all = append(all, fmt.Sprint(playSolver, i+1))
	}
	return all
}

// Episode is what one episode plays. One of its fields is set.
type Episode struct {
	Trial   *Trial   `json:"trial,omitempty"`
	Breed   *Breed   `json:"breed,omitempty"`
	Verdict *Verdict `json:"verdict,omitempty"`
}

// Asking holds the params that a trial needs: how problems are asked and scored.
type Asking struct {
	Ask     string          `json:"ask"`
	Checker problem.Checker `json:"checker"`
	Solvers int             `json:"solvers"`
	Samples int             `json:"samples"`
	Fitness Fitness         `json:"fitness"`
}

// Trial tries a prompt on problems.
type Trial struct {
	Prompt
	Purpose string `json:"purpose"`
	// Round is the round of the race, from 0.
	Round int `json:"round,omitempty"`
	// Baseline is the name of the prompt in the final test: winner, seed 3, no prompt.
	Baseline string            `json:"baseline,omitempty"`
	Problems []problem.Problem `json:"problems"`
}

// Breed asks the breeder for a prompt.
type Breed struct {
	Operator  string   `json:"operator"`
	Parents   []Prompt `json:"parents"`
	Cases     []Case   `json:"cases,omitempty"`
	MaxLength int      `json:"most"` // of the new prompt, in characters
}

// Case is a problem that was answered wrongly.
type Case struct {
	Question string `json:"question"`
	Expected string `json:"expected"`
	Response string `json:"response"`
}

// playWorld returns the world of an episode.
func playWorld(a Asking, e Episode) (world.World, error) {
	switch {
	case e.Breed != nil:
		return breeding{*e.Breed}, nil
	case e.Verdict != nil:
		return verdict{*e.Verdict}, nil
	case e.Trial != nil:
		return trial{a, *e.Trial}, nil
	}
	return nil, errors.New("evolve: params.episode: is empty; want one of trial, breed, verdict")
}
