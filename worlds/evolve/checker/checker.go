// Package checker decides whether what a model wrote answers a problem rightly.
//
// What it promises: it reads any text without failing; that a text holds no answer is told
// apart from a wrong one; the same text is judged the same way each time.
//
// It is not for asking a model to judge: type judge says only that one is to be asked, which
// package evolve does.
package checker

import (
	"fmt"
	"regexp"
	"strings"

	"parley/worlds/evolve/problem"
)

// Checker is how answers are checked, as a plan file says it.
type Checker struct {
	Type      string  `json:"type" doc:"How answers are checked." oneof:"number,exact,choice,regex,json,template,judge"`
	Tolerance float64 `json:"tolerance" doc:"How far a number may be from the right one."`
	Case      bool    `json:"case" doc:"Whether capital letters count, for exact and template."`
	Pattern   string  `json:"pattern" doc:"A regular expression, for regex: its last match in the text (or the first group of it) is the answer; with {answer} in it, a text that it matches is right."`
	Field     string  `json:"field" doc:"The field of a JSON object that holds the answer, for json: as result.value."`
	Template  string  `json:"template" doc:"What a right text holds, for template: as \"The answer is {answer}.\""`
}

// Types lists what a checker can be.
func Types() []string {
	return []string{"number", "exact", "choice", "regex", "json", "template", "judge"}
}

// Default compares numbers.
func Default() Checker { return Checker{Type: "number", Tolerance: 0.001} }

// Judged says whether a model is to be asked.
func (c Checker) Judged() bool { return c.Type == "judge" }

// Check says what is wrong with a checker; its errors name the key.
func (c Checker) Check() error {
	switch {
	case !(c.Tolerance >= 0):
		return fmt.Errorf("tolerance: %v: want 0 or more", c.Tolerance)
	case c.Type == "regex" && c.Pattern == "":
		return fmt.Errorf("pattern: is missing: type regex needs one")
	case c.Type == "json" && c.Field == "":
		return fmt.Errorf("field: is missing: type json needs the name of the field that holds the answer")
	case c.Type == "template" && !strings.Contains(c.Template, Answer):
		return fmt.Errorf("template: %q: want a text with %s in it", c.Template, Answer)
	}
	if _, err := c.pattern("1"); err != nil {
		return fmt.Errorf("pattern: %w", err)
	}
	return nil
}

// Answer stands for the right answer in a pattern or a template.
const Answer = "{answer}"

// Fits says what is wrong with the answer of a problem: one that this checker could never
// find right.
func (c Checker) Fits(p problem.Problem) error {
	switch c.Type {
	case "number":
		if _, ok := Number(p.Answer); !ok {
			return fmt.Errorf("%s: the answer %q holds no number", p.ID, short(p.Answer))
		}
	case "choice":
		if _, ok := letterOf(p.Answer, p.Choices); !ok {
			return fmt.Errorf("%s: the answer %q is neither a letter nor one of its choices", p.ID, short(p.Answer))
		}
	}
	return nil
}

// Grade is what a text comes to.
type Grade struct {
	Got     string // the answer that was found
	Found   bool   // whether there was one
	Correct bool
}

// Grade reads a text. A checker that asks a judge finds the whole text.
func (c Checker) Grade(text string, p problem.Problem) Grade {
	switch c.Type {
	case "exact":
		got := Final(text)
		return Grade{short(got), got != "", got != "" && c.fold(got) == c.fold(p.Answer)}
	case "choice":
		return gradeChoice(text, p)
	case "regex":
		return c.gradePattern(text, p)
	case "json":
		return c.gradeField(text, p)
	case "template":
		want := strings.ReplaceAll(c.Template, Answer, p.Answer)
		right := strings.Contains(c.fold(text), c.fold(want))
		return Grade{short(Final(text)), strings.TrimSpace(text) != "", right}
	case "judge":
		return Grade{Got: short(Final(text)), Found: strings.TrimSpace(text) != ""}
	}
	return c.gradeNumber(text, p)
}

// fold makes texts that mean the same equal: white space, and letters where case does not
// count.
func (c Checker) fold(text string) string {
	text = strings.Trim(strings.Join(strings.Fields(text), " "), " .")
	if !c.Case {
		text = strings.ToLower(text)
	}
	return text
}

// pattern compiles the pattern with an answer put in.
func (c Checker) pattern(answer string) (*regexp.Regexp, error) {
	return regexp.Compile(strings.ReplaceAll(c.Pattern, Answer, regexp.QuoteMeta(answer)))
}

func (c Checker) gradePattern(text string, p problem.Problem) Grade {
	re, err := c.pattern(p.Answer)
	if err != nil {
		return Grade{}
	}
	all := re.FindAllStringSubmatch(text, -1)
	if len(all) == 0 {
		return Grade{}
	}
	last := all[len(all)-1]
	got := last[0]
	if len(last) > 1 {
		got = last[1]
	}
	right := strings.Contains(c.Pattern, Answer) || c.fold(got) == c.fold(p.Answer)
	return Grade{short(got), true, right}
}

// short keeps what is recorded of an answer small.
func short(text string) string {
	const most = 120
	text = strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), "\uFFFD")
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}
