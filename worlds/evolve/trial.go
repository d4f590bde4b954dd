package evolve

import (
	"slices"
	"strings"
	"unicode/utf8"

	"parley/llm"
	"parley/world"
	"parley/worlds/evolve/checker"
	"parley/worlds/evolve/problem"
)

// The places in what a solver is asked.
const (
	question = "{question}"
	prompted = "{prompt}"
)

// trial is the world in which a prompt is tried.
type trial struct {
	Asking
	Trial
}

// answer is what came of one call.
type answer struct {
	problem int // its place in Problems
	seat    string
	reply   world.Reply
	grade   checker.Grade
	failed  bool
}

// Play asks all problems at once, then the judge where there is one, and counts.
func (t trial) Play(table *world.Table) world.Outcome {
	var calls []world.Call
	var answers []answer
	for i, p := range t.Problems {
		for _, seat := range solverSeats(t.Solvers) {
			for range t.Samples {
				calls = append(calls, world.Call{Seat: seat, Label: "solve", Ask: t.ask(p)})
				answers = append(answers, answer{problem: i, seat: seat})
			}
		}
	}
	for i, r := range table.Ask(calls...) {
		a := &answers[i]
		a.reply, a.failed = r, !r.OK()
		if r.OK() {
			a.grade = t.Checker.Grade(r.Text, t.Problems[a.problem])
		}
	}
	t.discardSilent(answers)
	var verdicts world.Unanswered
	if t.Checker.Judged() {
		verdicts = t.judge(table, answers)
	}
	o := t.outcome(answers)
	if len(o.Scores) == 0 {
		o.Failed = whyUnknown(answers, verdicts)
	}
	return o
}

// discardSilent takes the answers of a solver that never said a word for failures: they measure
// the server, not the prompt. Beside answers with words an empty one is wrong, or silence would
// pay.
func (t trial) discardSilent(answers []answer) {
	for _, seat := range solverSeats(t.Solvers) {
		spoke := slices.ContainsFunc(answers, func(a answer) bool {
			return a.seat == seat && !a.failed && strings.TrimSpace(a.reply.Text) != ""
		})
		for i := range answers {
			if answers[i].seat == seat && !spoke {
				answers[i].failed = true
			}
		}
	}
}

// whyUnknown says why a trial measured nothing.
func whyUnknown(answers []answer, verdicts world.Unanswered) string {
	if verdicts.All() {
		return verdicts.Because("no answer could be judged")
	}
	var calls world.Unanswered
	for _, a := range answers {
		calls.Add(a.reply)
	}
	if calls.All() {
		return calls.Because("no call was answered")
	}
	return calls.Because("no answer holds any text")
}

// ask is what a solver is asked. The prompt is a message of its own where it can be: it
// stands before many questions, and providers keep such beginnings.
func (t trial) ask(p problem.Problem) llm.Request {
	lines := []string{p.Question}
	for i, c := range p.Choices {
		lines = append(lines, "("+string(rune('A'+i))+") "+c)
	}
	whole := strings.NewReplacer(question, strings.Join(lines, "\n"), prompted, t.Text).Replace(t.Ask)
	if strings.Contains(t.Ask, prompted) || t.Text == "" {
		return llm.Request{Messages: []llm.Message{llm.User(strings.TrimSpace(whole))}}
	}
	return llm.Request{Messages: []llm.Message{llm.System(t.Text), llm.User(whole)}, Prefix: 1}
}

// judge asks the judge about every answer, and counts what it said.
func (t trial) judge(table *world.Table, answers []answer) (verdicts world.Unanswered) {
	var calls []world.Call
	var of []*answer
	for i := range answers {
		a := &answers[i]
		if a.failed || !a.grade.Found {
			continue
		}
		calls = append(calls, world.Call{Seat: Judge, Label: "judge", Ask: askJudge(t.Problems[a.problem], a.reply.Text)})
		of = append(of, a)
	}
	for i, r := range table.Ask(calls...) {
		correct, ok := readJudge(r)
		of[i].grade.Correct, of[i].failed = correct && ok, !ok
		if r.OK() && !ok {
			r.Failed = llm.KindInvalid
		}
		verdicts.Add(r)
	}
	return verdicts
}

// outcome counts the answers by problem and by solver.
func (t trial) outcome(answers []answer) world.Outcome {
	rec := TrialRecord{Prompt: t.Prompt, Purpose: t.Purpose, Round: t.Round, Baseline: t.Baseline, Calls: len(answers), Results: make([]Result, len(t.Problems))}
	right, answered := map[string]int{}, map[string]int{}
	for i, p := range t.Problems {
		rec.Results[i].Problem = p.ID
	}
	for _, a := range answers {
		rec.Results[a.problem].add(a)
		if !a.failed {
			answered[a.seat]++
			if a.grade.Correct {
				right[a.seat]++
			}
		}
	}
	for i := range rec.Results {
		rec.Results[i].even()
	}
	rec.Parts = t.Fitness.parts(rec.Results, t.Text)
	o := world.Outcome{Data: rec}
	for _, seat := range solverSeats(t.Solvers) {
		if n := answered[seat]; n > 0 {
			o.Scores = append(o.Scores, world.Score{Seat: seat, Name: t.score(), Value: float64(right[seat]) / float64(n)})
		}
	}
	return o
}

// What trials score, by what they are for: of the final test, the winner's apart from
// those of the baselines, so that runs can be compared by it problem by problem.
const (
	trainAccuracy      = "accuracy_train"
	validationAccuracy = "accuracy_validation"
	testAccuracy       = "accuracy_test"
	baselineAccuracy   = "accuracy_baselines"
)

func (t trial) score() string {
	switch {
	case t.Purpose == Validating:
		return validationAccuracy
	case t.Purpose != Testing:
		return trainAccuracy
	case testLabel(t.Baseline) == testLabel(winning):
		return testAccuracy
	}
	return baselineAccuracy
}

// add takes in an answer. Lengths are sums until even.
func (r *Result) add(a answer) {
	r.Asked++
	if a.failed {
		r.Failed++
		return
	}
	n := float64(utf8.RuneCountInString(a.reply.Text))
	r.Length += n
	if a.reply.Finish == llm.FinishLength {
		r.Cut++
	}
	switch {
	case a.grade.Correct:
		r.Correct++
		r.CorrectLength += n
		return
	case !a.grade.Found:
		r.Unread++
	}
	if r.Said == "" {
		r.Got, r.Said = a.grade.Got, ending(a.reply.Text, 400)
	}
}

func (r *Result) even() {
	if n := r.Asked - r.Failed; n > 0 {
		r.Length /= float64(n)
	}
	if r.Correct > 0 {
		r.CorrectLength /= float64(r.Correct)
	}
}

// ending is the last characters of a text, fit to be kept.
func ending(text string, most int) string {
	text = clean(text)
	if runes := []rune(text); len(runes) > most {
		return "…" + string(runes[len(runes)-most:])
	}
	return text
}

// clean makes a text of a model valid and takes away the white space around it.
func clean(text string) string {
	return strings.TrimSpace(strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), "\uFFFD"))
}
