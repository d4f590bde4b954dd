// Part checker decides whether a text of a model answers a problem correctly.
//
// It reads any text without failing, distinguishes a text without an answer from a wrong answer, and always grades the
// same text in the same way.
//
// It asks no model: with type judge, package play asks one.

package problem

import (
	"fmt"
	"regexp"
	"strings"
)

// Checker holds the params that decide how answers are checked.
type Checker struct {
	Type      string  `json:"type" doc:"How answers are checked." oneof:"number,exact,choice,regex,json,template,judge"`
	Tolerance float64 `json:"tolerance" doc:"How far a number may be from the right one."`
	Case      bool    `json:"case" doc:"Whether capital letters count, for exact and template."`
	Pattern   string  `json:"pattern" doc:"A regular expression, for regex: its last match in the text (or the first group of it) is the answer; with {answer} in it, a text that it matches is right."`
	Field     string  `json:"field" doc:"The field of a JSON object that holds the answer, for json: as result.value."`
	Template  string  `json:"template" doc:"What a right text holds, for template: as \"The answer is {answer}.\""`
}

// CheckerTypes lists the types of checkers.
func CheckerTypes() []string {
	return []string{"number", "exact", "choice", "regex", "json", "template", "judge"}
}

// DefaultChecker returns a checker that compares numbers.
func DefaultChecker() Checker { return Checker{Type: "number", Tolerance: 0.001} }

// Judged reports whether a model judges answers.
func (c Checker) Judged() bool { return c.Type == "judge" }

// Check returns the error in a checker. It names the key.
func (c Checker) Check() error {
	switch {
	case !(c.Tolerance >= 0):
		return fmt.Errorf("tolerance: %v: want 0 or more", c.Tolerance)
	case c.Type == "regex" && c.Pattern == "":
		return fmt.Errorf("pattern: is missing: type regex needs one")
	case c.Type == "json" && c.Field == "":
		return fmt.Errorf("field: is missing: type json needs the name of the field that holds the answer")
	case c.Type == "template" && !strings.Contains(c.Template, AnswerMark):
		return fmt.Errorf("template: %q: want a text with %s in it", c.Template, AnswerMark)
	}
	if _, err := c.pattern("1"); err != nil {
		return fmt.Errorf("pattern: %w", err)
	}
	return nil
}

// AnswerMark is the placeholder for the right answer in a pattern or a template.
const AnswerMark = "{answer}"

// Fits returns an error if the checker could never accept the expected answer of a problem.
func (c Checker) Fits(p Problem) error {
	switch c.Type {
	case "number":
		if _, ok := last(p.Answer); !ok {
			return fmt.Errorf("%s: the answer %q holds no number", p.ID, short(p.Answer))
		}
	case "choice":
		if _, ok := letterOf(p.Answer, p.Choices); !ok {
			return fmt.Errorf("%s: the answer %q is neither a letter nor one of its choices", p.ID, short(p.Answer))
		}
	}
	return nil
}

// Grade is the result of checking a text.
type Grade struct {
	Got     string // the answer that was found
	Found   bool   // whether an answer was found
	Correct bool
}

// Grade checks a text. With type judge, the whole text is the answer.
func (c Checker) Grade(text string, p Problem) Grade {
	switch c.Type {
	case "exact":
		got := final(text)
		return Grade{short(got), got != "", got != "" && c.fold(got) == c.fold(p.Answer)}
	case "choice":
		return gradeChoice(text, p)
	case "regex":
		return c.gradePattern(text, p)
	case "json":
		return c.gradeField(text, p)
	case "template":
		want := strings.ReplaceAll(c.Template, AnswerMark, p.Answer)
		right := strings.Contains(c.fold(text), c.fold(want))
		return Grade{short(final(text)), strings.TrimSpace(text) != "", right}
	case "judge":
		return Grade{Got: short(final(text)), Found: strings.TrimSpace(text) != ""}
	}
	return c.gradeNumber(text, p)
}

// fold normalizes white space, and case if it does not count.
func (c Checker) fold(text string) string {
	text = strings.Trim(strings.Join(strings.Fields(text), " "), " .")
	if !c.Case {
		text = strings.ToLower(text)
	}
	return text
}

// pattern compiles the pattern with an answer inserted.
func (c Checker) pattern(answer string) (*regexp.Regexp, error) {
	return regexp.Compile(strings.ReplaceAll(c.Pattern, AnswerMark, regexp.QuoteMeta(answer)))
}

func (c Checker) gradePattern(text string, p Problem) Grade {
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
	right := strings.Contains(c.Pattern, AnswerMark) || c.fold(got) == c.fold(p.Answer)
	return Grade{short(got), true, right}
}

// short shortens an answer for the record.
func short(text string) string {
	const maxRunes = 120
	text = strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), "\uFFFD")
	if runes := []rune(text); len(runes) > maxRunes {
		return string(runes[:maxRunes]) + "…"
	}
	return text
}
