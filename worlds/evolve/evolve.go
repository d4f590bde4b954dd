// Package evolve improves prompts by evolution. It breeds prompts, tries them on problems with known answers, and breeds
// from the better ones. At the end it compares the winner with plain prompts, on problems that evolution never saw.
//
// An evolution has its own plan. A generation takes a few stages. First the breeder, a model, writes new prompts. Then
// all new prompts race over the training problems: each stage tries them on some of the problems, and drops those
// that fall behind. After the last generation come validation, the final test and the verdict, which makes no calls and
// holds the result. An episode is a breeding, a trial of one prompt on some problems, or the verdict.
//
// It promises:
//   - A prompt is never tried twice on the same problem, even if it is bred again.
//   - Every prompt is tried on the same problems in the same order, so scores compare across generations.
//   - A failed call is neither right nor wrong.
//   - The plan is a pure fold over outcomes, so a resumed run breeds the same prompts.
//   - The test problems are asked only after the winner is chosen.
//
// The engine asks models in parallel and counts costs; this package does neither.
//
// Params say what to do (params.go), and Forecast estimates how much that is. The plan is the state machine of an
// evolution: races and generations (plan.go), children (offspring.go), and the final test with the verdict (final.go).
// The worlds of episodes are in episode.go, and the data that run files store in record.go. Readers see it in reports,
// stories and status lines. The simulated provider answers by standin.go.
package evolve

import (
	_ "embed" // the example is a file, so that it can be read and run as one
	"encoding/json"

	"parley/llm"
	"parley/world"
	"parley/world/exhibit"
)

//go:embed example.yaml
var example string

// Kind returns the kind of evolutions.
func Kind() world.Kind { return world.Define(definition{}) }

// definition has the methods of world.Definition and its optional parts.
type definition struct{}

// About describes the kind.
func (definition) About() world.About {
	return world.About{
		Name: "evolve", Version: 1, Example: example,
		Doc: "Prompts that improve themselves by evolution, measured on problems they have not seen.",
	}
}

// Exhibitor returns a new maker of exhibits for a report.
func (definition) Exhibitor() exhibit.Exhibitor { return &report{} }

// Status returns what reports the progress of a run.
func (definition) Status(p *Params) world.Status {
	return &status{generations: p.numbers().generations}
}

// Files returns the files of an episode.
func (definition) Files(plan json.RawMessage, p world.Played, _ []world.Note) map[string]string {
	return verdictFiles(plan, p)
}

// Story describes an episode: how the winner came about, how a prompt was bred, or how it did on each problem.
func (definition) Story(p world.Played, transcript []world.TranscriptEntry) []exhibit.Exhibit {
	return story(p, transcript)
}

// Measures declares the scores of outcomes.
func (definition) Measures(p *Params) []world.Measure { return measures(p) }

// StandIn answers for the simulated provider.
func (definition) StandIn(model string, req *llm.Request, seed uint64) (string, bool) {
	return standInAnswer(model, req, seed)
}

// Seats returns the seats of the solvers, and of the breeder and the judge if the params need them.
func (definition) Seats(p *Params) ([]string, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	var all []string
	if p.Play == "" {
		all = solverSeats(p.Solvers)
	}
	if p.breeds() {
		all = append(all, breederSeat)
	}
	if p.Checker.Judged() {
		all = append(all, judgeSeat)
	}
	return all, nil
}

// World returns the world of one episode. Without an episode, it is a trial of the first seed.
func (definition) World(p *Params, _ world.Lineup) (world.World, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	if p.Episode != nil {
		return newWorld(p.asking(), *p.Episode)
	}
	return newWorld(p.asking(), Episode{
		Trial: &Trial{Purpose: purposeRace, Prompt: Prompt{Text: p.seeds()[0]}, Problems: p.problemSet().Train},
	})
}
