package evolve

import (
	"encoding/json"
	"strings"
	"testing"

	"parley/world"
	"parley/worlds/evolve/problem"
)

// TestTaskName checks that a test is identified by its problem, without its id and the prompt, that an earlier trial is
// identified by its prompt too, and that a verdict has no identity.
func TestTaskName(t *testing.T) {
	t.Parallel()
	of := func(purpose, prompt, id, question string) string {
		task := definition{}.TaskName(&Params{Episode: &Episode{Trial: &Trial{
			Purpose: purpose, Prompt: Prompt{Text: prompt, Evolution: 4}, Problems: []problem.Problem{{ID: id, Question: question, Answer: "4"}},
		}}})
		if task.Name == "" || !task.Whole || task.Of != 5 {
			t.Errorf("%s of %s: %+v", purpose, question, task)
		}
		return task.Name
	}
	two := of(purposeTest, "Think.", "1", "2+2?")
	if two != of(purposeTest, "Guess.", "9", "2+2?") {
		t.Error("one problem, two prompts: not the same")
	}
	if two == of(purposeTest, "Think.", "1", "1+3?") {
		t.Error("two problems are the same")
	}
	if of(purposeRace, "Think.", "1", "2+2?") == of(purposeRace, "Guess.", "1", "2+2?") {
		t.Error("two prompts of a race are the same")
	}
	for _, params := range []*Params{{}, {Episode: &Episode{Verdict: &Verdict{}}}} {
		if task := (definition{}).TaskName(params); task != (world.Task{}) {
			t.Errorf("%+v: %+v", params, task)
		}
	}
}

// TestReadPrompt checks how the prompt is taken from the answer of a breeder.
func TestReadPrompt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ json, want string }{
		{`{"prompt": "  Think well.\n"}`, "Think well."},
		{`{"prompt": "one two three four five six"}`, "one two three four"},
		{`{"prompt": "first line here\nsecond line"}`, "first line here"},
		{`{"prompt": "` + strings.Repeat("x", 40) + `"}`, strings.Repeat("x", 20)},
		{`{"prompt": null}`, ""}, {`{}`, ""}, {`[]`, ""}, {``, ""},
	} {
		if got := readPrompt(world.Reply{JSON: json.RawMessage(c.json)}, 20); got != c.want {
			t.Errorf("%s: %q, want %q", c.json, got, c.want)
		}
	}
	if got := readPrompt(world.Reply{Failed: "timeout", JSON: json.RawMessage(`{"prompt":"x"}`)}, 20); got != "" {
		t.Errorf("a failure is the prompt %q", got)
	}
}
