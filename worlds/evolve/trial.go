package evolve

import (
	"slices"
	"strings"
	"unicode/utf8"

	"parley/llm"
	"parley/world"
	"parley/worlds/evolve/problem"
)

// The placeholders in the text that a solver is asked.
const (
	questionHere = "{question}"
	promptHere   = "{prompt}"
)

// trial is the world that tries a prompt.
type trial struct {
	Asking
	Trial
}

// answer is the result of one call.
type answer struct {
	problem int // index in Problems
	seat    string
	reply   world.Reply
	grade   problem.Grade
	failed  bool
}

// Play asks all problems at once, then the judge if there is one, and counts the answers.
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

// discardSilent marks all answers of a solver as failed if all of them are empty: they measure the server, not the
// prompt. If only some are empty, these are wrong answers, so that an empty answer is never an advantage.
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

// whyUnknown explains why a trial has no score.
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

// ask returns the request to a solver. The prompt is a separate message if possible: providers cache a beginning that
// many requests share.
func (t trial) ask(p problem.Problem) llm.Request {
	lines := []string{p.Question}
	for i, c := range p.Choices {
		lines = append(lines, "("+string(rune('A'+i))+") "+c)
	}
	whole := strings.NewReplacer(questionHere, strings.Join(lines, "\n"), promptHere, t.Text).Replace(t.Ask)
	if strings.Contains(t.Ask, promptHere) || t.Text == "" {
		return llm.Request{Messages: []llm.Message{llm.User(strings.TrimSpace(whole))}}
	}
	return llm.Request{Messages: []llm.Message{llm.System(t.Text), llm.User(whole)}, Prefix: 1}
}

// judge asks the judge about every answer, and returns how many of its replies are missing.
func (t trial) judge(table *world.Table, answers []answer) (verdicts world.Unanswered) {
	var calls []world.Call
	var judged []*answer
	for i := range answers {
		a := &answers[i]
		if a.failed || !a.grade.Found {
			continue
		}
		calls = append(calls, world.Call{Seat: playJudge, Label: "judge", Ask: askJudge(t.Problems[a.problem], a.reply.Text)})
		judged = append(judged, a)
	}
	for i, r := range table.Ask(calls...) {
		correct, ok := readJudge(r)
		judged[i].grade.Correct, judged[i].failed = correct && ok, !ok
		if r.OK() && !ok {
			r.Failed = llm.KindInvalid
		}
		verdicts.Add(r)
	}
	return verdicts
}

// outcome counts the answers by problem and by solver.
func (t trial) outcome(answers []answer) world.Outcome {
	rec := recordTrial{Prompt: t.Prompt, Purpose: t.Purpose, Round: t.Round, Baseline: t.Baseline, Calls: len(answers), Results: make([]Result, len(t.Problems))}
	right, answered := map[string]int{}, map[string]int{}
	for i, p := range t.Problems {
		rec.Results[i].Problem = p.ID
	}
	for _, a := range answers {
		add(&rec.Results[a.problem], a)
		if !a.failed {
			answered[a.seat]++
			if a.grade.Correct {
				right[a.seat]++
			}
		}
	}
	for i := range rec.Results {
		average(&rec.Results[i])
	}
	rec.Parts = t.Fitness.Parts(rec.Results, t.Text)
	o := world.Outcome{Data: rec}
	for _, seat := range solverSeats(t.Solvers) {
		if n := answered[seat]; n > 0 {
			o.Scores = append(o.Scores, world.Score{Seat: seat, Name: t.score(), Value: float64(right[seat]) / float64(n)})
		}
	}
	return o
}

// score returns the name of the score of a trial.
func (t trial) score() string {
	switch {
	case t.Purpose == recordValidating:
		return validationAccuracy
	case t.Purpose != recordTesting:
		return trainAccuracy
	case testLabel(t.Baseline) == testLabel(recordWinner):
		return testAccuracy
	}
	return baselineAccuracy
}

// add adds an answer to a result. Lengths are sums until average is called.
func add(r *Result, a answer) {
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

// average turns the sums of lengths into means.
func average(r *Result) {
	if n := r.Asked - r.Failed; n > 0 {
		r.Length /= float64(n)
	}
	if r.Correct > 0 {
		r.CorrectLength /= float64(r.Correct)
	}
}

// ending returns the last n characters of a text.
func ending(text string, n int) string {
	text = clean(text)
	if runes := []rune(text); len(runes) > n {
		return "…" + string(runes[len(runes)-n:])
	}
	return text
}

// clean makes a text of a model valid UTF-8, without NUL and without white space around it.
func clean(text string) string {
	return strings.TrimSpace(strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), "\uFFFD"))
}
