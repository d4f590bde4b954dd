package evolve

import (
	"strings"

	"parley/world"
)

// verdict is the world that ends an evolution. It asks nothing: its params hold the verdict.
type verdict struct{ Verdict }

// Play returns the verdict as an outcome.
func (v verdict) Play(t *world.Table) world.Outcome {
	o := world.Outcome{Data: v.Verdict}
	if v.Winner == nil {
		o.Failed = "no prompt could be tried: " + string(v.Stopped)
		return o
	}
	t.Note("winner", "", v.Winner.Text)
	score := func(name string, x float64) {
		o.Scores = append(o.Scores, world.Score{Name: name, Value: x})
	}
	score("generations", float64(max(0, len(v.Generations)-1)))
	for _, x := range v.Test {
		switch {
		case x.Accuracy.N == 0:
		case strings.HasPrefix(x.Name, recordWinner):
			score("winner_accuracy", x.Accuracy.Value)
		case x.Name == v.Best:
			score("baseline_accuracy", x.Accuracy.Value)
		}
	}
	if v.Gain != nil {
		score("gain", v.Gain.Value)
	}
	return o
}

// The scores of trials, by purpose. In the final test, the winner has its own score, so that runs can be compared by it
// problem by problem.
const (
	trainAccuracy      = "accuracy_train"
	validationAccuracy = "accuracy_validation"
	testAccuracy       = "accuracy_test"
	baselineAccuracy   = "accuracy_baselines"
)

// measures declares the scores of outcomes: those of trials by solver, and those of the verdict for the whole evolution.
func measures(solvers int) []world.Measure {
	share, seats := world.Bounds{High: 1}, solverSeats(solvers)
	return []world.Measure{
		{Name: trainAccuracy, Seats: seats, Bounds: share},
		{Name: validationAccuracy, Seats: seats, Bounds: share},
		{Name: testAccuracy, Seats: seats, Bounds: share},
		{Name: baselineAccuracy, Seats: seats, Bounds: share},
		{Name: "generations", Bounds: world.AtLeast0()},
		{Name: "winner_accuracy", Bounds: share},
		{Name: "baseline_accuracy", Bounds: share},
		{Name: "gain", Bounds: world.Share().Difference()},
	}
}
