package evolve

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"parley/world"
	"parley/world/exhibit"
	"parley/worlds/evolve/genome"
	"parley/worlds/evolve/problem"
)

// The limits of a story.
const (
	maxStoryProblems = 200
	maxStoryText     = 4000 // bytes of an answer
)

// story describes an episode of an evolution: how the winner came about, step by step, how a prompt was bred, or how it did
// on each problem. The data may be of any form: a run file may come from anywhere.
func story(p world.Played, entries []world.TranscriptEntry) []exhibit.Exhibit {
	var params struct{ Episode Episode }
	if json.Unmarshal(p.Spec.Params, &params) != nil {
		return nil
	}
	s := &storyBuilder{}
	title := "Step by step"
	switch e := params.Episode; {
	case e.Trial != nil:
		title = "The prompt, problem by problem"
		s.trial(p, e.Trial.Problems, entries)
	case e.Breed != nil:
		title = "How the prompt was bred"
		s.breeding(p, e.Breed.Parents)
	case e.Verdict != nil:
		title = "How the winner came about"
		s.verdict(p)
	}
	if p.Outcome.Failed != "" {
		s.Begin("The end")
		s.say("", "failed: "+p.Outcome.Failed)
	}
	page := exhibit.Page{}
	page.Add("evolve-story", title, "", s.Replay)
	return page.All
}

// storyBuilder builds a story.
type storyBuilder struct{ exhibit.Replay }

// say adds a line to the last frame.
func (s *storyBuilder) say(who, text string) {
	s.Say(exhibit.FrameLine{Who: who, Text: exhibit.Shorten(strings.TrimRight(text, "\n "), maxStoryText)})
}

// verdict follows the first parents of the winner from the oldest on, and ends with the final test.
func (s *storyBuilder) verdict(p world.Played) {
	v, ok := readData[Verdict](p.Outcome)
	if !ok {
		return
	}
	for i, a := range trunkOf(v.Lineage) {
		s.Begin("Generation %d: prompt %d", a.Generation, a.ID)
		s.say("", origin(&a.Prompt)+": "+a.reached(v.Measure))
		if i == 0 || a.Diff == "" {
			s.say("prompt", a.Text)
		} else {
			s.changes(a.Diff)
		}
	}
	if v.Winner == nil {
		return
	}
	s.Begin("The winner: prompt %d", v.Winner.ID)
	s.say("prompt", v.Winner.Text)
	s.say("", fmt.Sprintf("%d prompts in %d generations, stopped by %s.", v.Prompts, max(0, len(v.Generations)-1), strings.ReplaceAll(string(v.Stopped), "_", " ")))
	if len(v.Test) == 0 {
		return
	}
	s.Begin("The final test")
	for _, t := range v.Test {
		if t.Accuracy.N > 0 {
			s.say("", fmt.Sprintf("%s (prompt %d): %s %s over %d problems.", t.Name, t.Prompt, v.Measure.name(), t.Accuracy, t.Accuracy.N))
		}
	}
	s.say("", v.sentence())
}

// changes tells what is gone, new or moved, by a difference as genome.Diff writes it.
func (s *storyBuilder) changes(diff string) {
	type change struct{ by, text string }
	var all []change
	sum := map[string]int{} // how often a text is new, less how often it is gone
	for line := range strings.Lines(diff) {
		if text, ok := strings.CutPrefix(line, "- "); ok {
			all = append(all, change{"gone", text})
			sum[text]--
		} else if text, ok := strings.CutPrefix(line, "+ "); ok {
			all = append(all, change{"new", text})
			sum[text]++
		}
	}
	moved := map[string]bool{}
	for _, c := range all {
		switch n := sum[c.text]; {
		case n == 0 && !moved[c.text]:
			moved[c.text] = true
			s.say("moved", c.text)
		case c.by == "gone" && n < 0:
			sum[c.text]++
			s.say(c.by, c.text)
		case c.by == "new" && n > 0:
			sum[c.text]--
			s.say(c.by, c.text)
		}
	}
}

// origin describes how a prompt was made.
func origin(p *Prompt) string {
	if len(p.Parents) == 0 {
		return "It is there from the start (" + p.Operator + ")"
	}
	var parents []string
	for i, id := range p.Parents {
		if !slices.Contains(p.Parents[:i], id) {
			parents = append(parents, fmt.Sprintf("prompt %d", id))
		}
	}
	return "Made from " + strings.Join(parents, " and ") + " by " + operatorNames(p.Operator)
}

// operatorNames names what made a prompt: "single point and insert".
func operatorNames(by string) string { return strings.NewReplacer("_", " ", "+", " and ").Replace(by) }

// breeding shows the parents of a prompt, and what changed.
func (s *storyBuilder) breeding(p world.Played, parents []Prompt) {
	for _, parent := range parents {
		s.Begin("Prompt %d, a parent", parent.ID)
		s.say("prompt", parent.Text)
	}
	b, ok := readData[breedingRecord](p.Outcome)
	if !ok || b.Text == "" {
		return
	}
	s.Begin("The new prompt, by %s", operatorNames(b.Operator))
	s.say("prompt", b.Text)
	if len(parents) > 0 {
		s.changes(genome.Diff(genome.Parse(parents[0].Text), genome.Parse(b.Text)))
	}
}

// trial shows a prompt, and how it did on each problem.
func (s *storyBuilder) trial(p world.Played, problems []problem.Problem, entries []world.TranscriptEntry) {
	t, ok := readData[trialRecord](p.Outcome)
	if !ok {
		return
	}
	s.Begin("Prompt %d, generation %d", t.ID, t.Generation)
	s.say("", origin(&t.Prompt)+".")
	s.say("prompt", t.Text)
	answers := solverAnswers(entries)
	each := len(answers) / max(1, len(problems)) // all answers to a problem are next to each other
	for i, q := range problems[:min(len(problems), maxStoryProblems)] {
		if i >= len(t.Results) {
			break
		}
		if each > 0 {
			s.Turn = answers[i*each].Turn
		}
		s.Begin("Problem %s: %s", q.ID, resultText(t.Results[i]))
		s.say("problem", q.Question)
		for _, a := range answers[i*each : (i+1)*each] {
			if a.Reply.OK() {
				s.say(a.Seat, a.Reply.Text)
			} else {
				s.say(a.Seat, "failed: "+strings.ReplaceAll(string(a.Reply.Failed), "_", " "))
			}
		}
		s.say("right is", q.Answer)
	}
	s.Begin("The end")
	s.say("", fmt.Sprintf("Accuracy %.3f, fitness %.3f, over %d problems with an answer.", t.Parts.Accuracy, t.Parts.Fitness, t.Parts.Problems))
	if n := len(problems) - maxStoryProblems; n > 0 {
		s.say("", fmt.Sprintf("%d more problems are not shown.", n))
	}
}

// solverAnswers returns the answers of solvers, in the order of their calls.
func solverAnswers(entries []world.TranscriptEntry) (all []world.TranscriptEntry) {
	for _, e := range entries {
		if e.Note == nil && e.Label == "solve" {
			all = append(all, e)
		}
	}
	return all
}

// resultText says how many answers to a problem are right.
func resultText(r Result) string {
	switch n := r.Asked - r.Failed; {
	case n <= 0:
		return "not answered"
	case n == 1 && r.Correct == 1:
		return "right"
	case n == 1:
		return "wrong"
	default:
		return fmt.Sprintf("%d of %d right", r.Correct, n)
	}
}
