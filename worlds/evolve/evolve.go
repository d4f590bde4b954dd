// Package evolve improves prompts by evolution: it breeds prompts, tries them on problems
// with known answers, lets the better ones have offspring, and at the end measures the winner
// beside plain prompts on problems that evolution never saw.
//
// A run is a plan of its own. A generation is a few stages: prompts that a model writes are
// bred, then all that are new are raced over the training problems, a part of the problems
// a stage, and those that fall behind are dropped. Then comes validation, the final test and
// a verdict, which asks nothing and says what came of it all. An episode is a breeding, a
// trial of one prompt on some problems, or the verdict.
//
// What it promises: a prompt is never tried twice on the same problem, however often it is
// bred; every prompt is tried on the same problems in the same order, so that scores compare
// across generations; a call that fails is neither right nor wrong and counts for nothing;
// the plan is a pure fold over outcomes, so that a run that is resumed breeds the same; the
// test problems are asked about after the winner is chosen, and of nobody before.
//
// It is not for asking models in parallel or for keeping costs: the engine does that.
//
// The flow: params and presets say what to do; forecast says what that may come to; plan is
// the state machine; race, offspring and settle are its parts; trial and breed are the
// worlds; verdict is the end. Status tells how it goes, exhibits and files what came of it.
package evolve

import (
	_ "embed" // the example is a file, so that it can be read and run as one
	"fmt"

	"parley/world"
)

//go:embed example.yaml
var example string

// Kind is the family of evolutions.
func Kind() world.Kind { return world.Define(definition{}) }

// definition is what evolutions are made of.
type definition struct{}

// About says what they are.
func (definition) About() world.About {
	return world.About{
		Name: "evolve", Version: 1, Example: example,
		Doc: "Prompts that improve themselves by evolution, measured on problems they have not seen.",
	}
}

// Exhibitor begins the part of a report.
func (definition) Exhibitor() world.Exhibitor { return &exhibitor{} }

// The seats: who solves problems (solver1, solver2 and so on where there are several), who
// writes new prompts, and who judges answers.
const (
	Solver  = "solver"
	Breeder = "breeder"
	Judge   = "judge"
)

// Seats are those of the solvers, and of the breeder and the judge where params want them.
func (definition) Seats(p *Params) ([]string, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	all := solverSeats(p.Solvers)
	if p.breeds() {
		all = append(all, Breeder)
	}
	if p.Checker.Judged() {
		all = append(all, Judge)
	}
	return all, nil
}

// solverSeats lists the seats that solve problems.
func solverSeats(n int) []string {
	if n == 1 {
		return []string{Solver}
	}
	var all []string
	for i := range n {
		all = append(all, fmt.Sprint(Solver, i+1))
	}
	return all
}

// World makes what one episode plays. Params that no plan has made an episode of are a
// trial of the first seed.
func (definition) World(p *Params, _ world.Lineup) (world.World, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	switch e := p.Episode; {
	case e == nil:
		return trial{p.asking(), Trial{Purpose: Racing, Prompt: Prompt{Text: p.seeds()[0]}, Problems: p.set().Train}}, nil
	case e.Breed != nil:
		return breeding{*e.Breed}, nil
	case e.Verdict != nil:
		return verdict{*e.Verdict}, nil
	case e.Trial != nil:
		return trial{p.asking(), *e.Trial}, nil
	}
	return nil, fmt.Errorf("evolve: params.episode: holds neither a trial, nor a breeding, nor a verdict")
}
