package problem

import (
	"strings"
	"testing"
)

// TestExtract checks which number of a text is its answer.
func TestExtract(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		want float64
	}{
		{"#### 72", 72},
		{"so it is\n#### 3.5", 3.5},
		{"#### -10", -10},
		{"#### 1,234", 1234},
		{"#### $1,234,567.50", 1234567.5},
		{"#### −4", -4},
		{"Answer: 42", 42},
		{"ANSWER: 42 apples in 3 bags", 42},
		{"The answer is 123.45", 123.45},
		{"The answer is 123.45. That took 6 steps.", 123.45},
		{"First 10, then 20, which makes 30", 30},
		{"First 10, then 20, which makes 30.", 30},
		{"Answer: 5? No. Answer: 7", 7},
		{"#### 5\nNo:\n#### 7 and not 8", 7},
		{"Answer: none yet, 12", 12},
		{"#### nothing, Answer: 9", 9},
		{`It is \boxed{18} of 40`, 18},
		{"7-3 is 4", 4},
		{"from 10-15", 15},
		{"that is -$5", -5},
		{"a-12", 12},
		{"(3)-4", 4},
		{"it is -4 now", -4},
		{"72%", 72},
		{"12,34", 34},
		{".5", 0.5},
	} {
		if got, ok := ExtractNumber(c.text); !ok || got != c.want {
			t.Errorf("%q: %v (%v), want %v", c.text, got, ok, c.want)
		}
	}
	for _, text := range []string{"", "none", "#### ", "Answer: yes", strings.Repeat("9", 400)} {
		if got, ok := ExtractNumber(text); ok {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestGrade(t *testing.T) {
	t.Parallel()
	number := DefaultChecker()
	exact, strict := Checker{Type: "exact"}, Checker{Type: "exact", Case: true}
	choice := Checker{Type: "choice"}
	regex := Checker{Type: "regex", Pattern: `result=(\w+)`}
	holds := Checker{Type: "regex", Pattern: `(?i)\bis {answer}\b`}
	field := Checker{Type: "json", Field: "out.value", Tolerance: 0.01}
	template := Checker{Type: "template", Template: "The capital is {answer}."}
	abc := []string{"red", "dark green", "blue"}
	for _, c := range []struct {
		by             Checker
		text, answer   string
		choices        []string
		found, correct bool
	}{
		{by: number, text: "#### 72", answer: "72.0", found: true, correct: true},
		{by: number, text: "#### 72.0009", answer: "72", found: true, correct: true},
		{by: number, text: "#### 72.01", answer: "72", found: true},
		{by: number, text: "1,000,000", answer: "$1000000", found: true, correct: true},
		{by: number, text: "no idea", answer: "72"},
		{by: exact, text: "Thinking.\nAnswer: New  York.", answer: "new york", found: true, correct: true},
		{by: strict, text: "Answer: New York", answer: "new york", found: true},
		{by: exact, text: "It lies far off.\nParis", answer: "Paris", found: true, correct: true},
		{by: exact, text: "  \n", answer: "Paris"},
		{by: choice, text: "The answer is (B).", answer: "B", found: true, correct: true},
		{by: choice, text: "Answer: b", answer: "B", found: true, correct: true},
		{by: choice, text: "A is wrong, so\n(C)", answer: "blue", choices: abc, found: true, correct: true},
		{by: choice, text: "Answer: dark green", answer: "B", choices: abc, found: true, correct: true},
		{by: choice, text: "**C**", answer: "B", found: true},
		{by: choice, text: "Because it is so.", answer: "B"},
		{by: regex, text: "result=one then result=two", answer: "two", found: true, correct: true},
		{by: regex, text: "result: two", answer: "two"},
		{by: holds, text: "It IS c++ 3", answer: "c++ 3", found: true, correct: true},
		{by: field, text: "```json\n{\"out\": {\"value\": 3.001}}\n```", answer: "3", found: true, correct: true},
		{by: field, text: `{"out": {"value": "Yes"}} or {"out": 2}`, answer: "yes", found: true, correct: true},
		{by: field, text: `{"out": {"value": null}}`, answer: "3"},
		{by: field, text: `{"out": {"value": 4}`, answer: "4"},
		{by: template, text: "I think the capital is  paris. Yes", answer: "Paris", found: true, correct: true},
		{by: template, text: "Paris", answer: "Paris", found: true},
		{by: Checker{Type: "judge"}, text: "whatever", answer: "x", found: true},
	} {
		got := c.by.Grade(c.text, Problem{Answer: c.answer, Choices: c.choices})
		if got.Found != c.found || got.Correct != c.correct {
			t.Errorf("%s of %q with %q: %+v", c.by.Type, c.text, c.answer, got)
		}
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		by   Checker
		want string
	}{
		{DefaultChecker(), ""},
		{Checker{Type: "regex"}, "pattern: is missing"},
		{Checker{Type: "regex", Pattern: "("}, "pattern: error parsing"},
		{Checker{Type: "json"}, "field: is missing"},
		{Checker{Type: "template", Template: "x"}, "template: \"x\": want a text with {answer}"},
	} {
		err := c.by.Check()
		if (err == nil) != (c.want == "") || err != nil && !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.by, err, c.want)
		}
	}
	for _, c := range []struct {
		by   string
		p    Problem
		fits bool
	}{
		{"number", Problem{Answer: "72 apples"}, true},
		{"number", Problem{Answer: "many"}, false},
		{"choice", Problem{Answer: "b"}, true},
		{"choice", Problem{Answer: "red", Choices: []string{"blue", "red"}}, true},
		{"choice", Problem{Answer: "green", Choices: []string{"blue", "red"}}, false},
		{"exact", Problem{Answer: "many"}, true},
	} {
		if err := (Checker{Type: c.by}).Fits(c.p); (err == nil) != c.fits {
			t.Errorf("%s and %+v: %v", c.by, c.p, err)
		}
	}
}

// FuzzGrade checks that every checker reads any text.
func FuzzGrade(f *testing.F) {
	for _, s := range []string{"#### 72", `\boxed{`, "Answer:", `{"a":{"b":1}}`, "(A)", "-", "####-", "\xff", "{{{{{"} {
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, text, answer string) {
		for _, kind := range []string{"number", "exact", "choice", "regex", "json", "template", "judge"} {
			c := Checker{Type: kind, Pattern: "(a|{answer})", Field: "a.b", Template: "is {answer}"}
			g := c.Grade(text, Problem{Answer: answer, Choices: []string{answer, "x"}})
			if g.Correct && !g.Found {
				t.Errorf("%s: right without an answer: %+v", kind, g)
			}
			if len([]rune(g.Got)) > 500 {
				t.Errorf("%s: keeps %d characters", kind, len([]rune(g.Got)))
			}
		}
	})
}
