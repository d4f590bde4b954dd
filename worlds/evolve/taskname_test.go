package evolve

import (
	"testing"

	"parley/worlds/evolve/problem"
)

// TestTaskName checks that a test is identified by its problem, without its id and the prompt, that an earlier trial is
// identified by its prompt too, and that a verdict has no identity.
func TestTaskName(t *testing.T) {
	t.Parallel()
	of := func(purpose, prompt, id, question string) string {
		what, whole := definition{}.TaskName(&Params{Episode: &Episode{Trial: &Trial{
			Purpose: purpose, Prompt: Prompt{Text: prompt}, Problems: []problem.Problem{{ID: id, Question: question, Answer: "4"}},
		}}})
		if what == "" || !whole {
			t.Errorf("%s of %s: %q, %v", purpose, question, what, whole)
		}
		return what
	}
	two := of(recordTesting, "Think.", "1", "2+2?")
	if two != of(recordTesting, "Guess.", "9", "2+2?") {
		t.Error("one problem, two prompts: not the same")
	}
	if two == of(recordTesting, "Think.", "1", "1+3?") {
		t.Error("two problems are the same")
	}
	if of(recordRacing, "Think.", "1", "2+2?") == of(recordRacing, "Guess.", "1", "2+2?") {
		t.Error("two prompts of a race are the same")
	}
	for _, params := range []*Params{{}, {Episode: &Episode{Verdict: &Verdict{}}}} {
		if what, whole := (definition{}).TaskName(params); what != "" || whole {
			t.Errorf("%+v: %q, %v", params, what, whole)
		}
	}
}
