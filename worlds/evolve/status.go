package evolve

import (
	"fmt"
	"math"
	"strings"

	"parley/world"
	"parley/worlds/evolve/genome"
)

// status reports the progress of evolutions. It collects the same as the exhibits of a report, and drops
// what it no longer needs.
type status struct {
	report
	generations int // after the first
}

// Add adds an episode.
func (s *status) Add(p world.Played) {
	if e := s.add(p); e != nil {
		e.dropOldPrompts()
	}
}

// dropOldPrompts keeps the prompts of the last generation, and the best.
func (e *evolution) dropOldPrompts() {
	if e.kept == e.last {
		return
	}
	e.kept = e.last
	best := e.best()
	for id, t := range e.prompts {
		if t.Generation < e.last && t != best {
			delete(e.prompts, id)
		}
	}
}

// best returns the fittest of the prompts with the most problems.
func (e *evolution) best() *triedPrompt {
	var best *triedPrompt
	for _, t := range e.prompts {
		switch {
		case best == nil || len(t.results) > len(best.results):
			best = t
		case len(t.results) < len(best.results):
		case t.fitness > best.fitness || t.fitness == best.fitness && t.ID < best.ID:
			best = t
		}
	}
	return best
}

// Line describes the progress: of one evolution in full, of several in short.
func (s *status) Line() []string {
	switch len(s.all) {
	case 0:
		return nil
	case 1:
		return s.all[0].line(s.generations)
	}
	winners, best := world.Sample{Bounds: s.measured().bounds()}, world.Sample{}
	gains := world.Sample{Bounds: s.measured().bounds().Difference()}
	low, high, ended := math.MaxInt, 0, 0
	for _, e := range s.all {
		low, high = min(low, e.last), max(high, e.last)
		if b := e.best(); b != nil {
			best.Add(world.Unit{}, b.value)
		}
		if e.verdict == nil {
			continue
		}
		ended++
		if t := e.verdict.Test; len(t) > 0 && t[0].Accuracy.N > 0 {
			winners.Add(world.Unit{}, t[0].Accuracy.Value)
		}
		if g := e.verdict.Gain; g != nil {
			gains.Add(world.Unit{}, g.Value)
		}
	}
	if ended < len(s.all) {
		line := []string{s.span(low, high), fmt.Sprintf("%d of %d evolutions ended", ended, len(s.all))}
		return append(line, "their best "+meanOf(&best)+" on average")
	}
	line := []string{fmt.Sprintf("%d evolutions", ended)}
	if winners.Episodes() > 0 {
		line = append(line, s.measured().result("the winners", meanOf(&winners)))
	}
	if gains.Episodes() > 0 {
		q := gains.Estimate(confidence)
		line = append(line, gainText(Estimate{Value: q.Value, Low: q.Low, High: q.High, N: gains.Episodes()}))
	}
	return line
}

// span describes the current generations of several evolutions. It includes the maximum only if it is
// the same for all, which it may not be in a matrix.
func (s *status) span(low, high int) string {
	text := fmt.Sprintf("generation %d", low)
	if high > low {
		text = fmt.Sprintf("generations %d to %d", low, high)
	}
	for _, e := range s.all {
		if e.cell != s.all[0].cell {
			return text
		}
	}
	return fmt.Sprintf("%s of %d", text, s.generations)
}

// line describes the progress of one evolution.
func (e *evolution) line(generations int) []string {
	if e.verdict != nil {
		return verdictLine(e.verdict)
	}
	line := []string{fmt.Sprintf("generation %d of %d", e.last, max(generations, e.last))}
	switch {
	case len(e.tests) > 0:
		line = append(line, "final test")
	case e.validating:
		line = append(line, "validation")
	}
	if best := e.best(); best != nil {
		line = append(line, "best "+best.fitnessText(e.measure))
	}
	const enough = 64 // for the diversity, which is computed several times a second
	var values []float64
	var texts []genome.Genome
	for _, t := range e.newPrompts(e.last) {
		values = append(values, t.value)
		if len(texts) < enough {
			texts = append(texts, genome.Parse(t.Text))
		}
	}
	return append(line, fmt.Sprintf("mean %.2f", mean(values)), fmt.Sprintf("diversity %.2f", genome.Diversity(texts)))
}

// fitnessText describes the fitness of a prompt, with the interval of the share of problems it solves.
func (t *triedPrompt) fitnessText(m *Measured) string {
	solved := world.Sample{Bounds: m.bounds()}
	for _, r := range t.results {
		if x, ok := r.Score(); ok {
			solved.Add(world.Unit{}, m.value(x))
		}
	}
	share := solved.Estimate(confidence)
	solves := fmt.Sprintf("%.2f [%.2f, %.2f]", share.Value, share.Low, share.High)
	switch {
	case !share.Known():
		return "not known"
	case math.Abs(share.Value-t.value) < 1e-9:
		return solves
	}
	return fmt.Sprintf("%.2f, which solves %s", t.value, solves)
}

// meanOf formats a mean with its interval, if there is one.
func meanOf(s *world.Sample) string {
	q := s.Estimate(confidence)
	return estimateText(Estimate{Value: q.Value, Low: q.Low, High: q.High, N: s.Episodes()})
}

// estimateText formats an estimate, without the interval if there is a single observation.
func estimateText(e Estimate) string {
	if e.N < 2 {
		return fmt.Sprintf("%.2f", e.Value)
	}
	return e.String()
}

// result describes how one or several prompts did in the final test.
func (m *Measured) result(who, value string) string {
	verb := "solves"
	if strings.HasSuffix(who, "s") {
		verb = "solve"
	}
	if m == nil {
		return fmt.Sprintf("%s %s %s of the test problems", who, verb, value)
	}
	return fmt.Sprintf("%s in the test of %s: %s", m.Score.Name, who, value)
}

// gainText describes a gain over the best baseline.
func gainText(e Estimate) string {
	word := "more"
	if e.Value < 0 {
		word, e.Value, e.Low, e.High = "less", -e.Value, -e.High, -e.Low
	}
	return estimateText(e) + " " + word + " than the best baseline"
}

// verdictLine describes the result of an evolution.
func verdictLine(v *Verdict) []string {
	line := []string{fmt.Sprintf("stopped by %s after generation %d", strings.ReplaceAll(string(v.Stopped), "_", " "), max(0, len(v.Generations)-1))}
	if len(v.Test) == 0 || v.Winner == nil {
		return line
	}
	line = append(line, v.Measure.result("the best prompt", v.Test[0].Accuracy.String()))
	switch g := v.Gain; {
	case g == nil:
		line = append(line, "no more than it began with")
	case v.P == nil:
		line = append(line, fmt.Sprintf("%s (%s)", gainText(*g), v.Best))
	default:
		line = append(line, fmt.Sprintf("%s (%s; %s)", gainText(*g), v.Best, pText(*v.P)))
	}
	return line
}

// pText formats P.
func pText(p float64) string {
	if p < 0.001 {
		return "p < 0.001"
	}
	return fmt.Sprintf("p = %.3f", p)
}
