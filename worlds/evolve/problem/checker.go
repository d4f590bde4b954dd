package problem

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Checker holds the params that decide how answers are checked. A checker reads any text without failing, and
// distinguishes a text without an answer from a wrong answer. It asks no model: with type judge, its caller asks one.
type Checker struct {
	Type      string  `json:"type" doc:"How answers are checked." oneof:"number,exact,choice,regex,json,template,judge"`
	Tolerance float64 `json:"tolerance" doc:"How far a number may be from the right one." range:"0"`
	Case      bool    `json:"case" doc:"Whether capital letters count, for exact and template."`
	Pattern   string  `json:"pattern" doc:"A regular expression, for regex: its last match in the text (or the first group of it) is the answer; with {answer} in it, a text that it matches is right."`
	Field     string  `json:"field" doc:"The field of a JSON object that holds the answer, for json: as result.value."`
	Template  string  `json:"template" doc:"What a right text holds, for template: as \"The answer is {answer}.\""`
}

// DefaultChecker returns a checker that compares numbers.
func DefaultChecker() Checker { return Checker{Type: "number", Tolerance: 0.001} }

// Judged reports whether a model judges answers.
func (c Checker) Judged() bool { return c.Type == "judge" }

// Check returns the error in a checker. It names the key.
func (c Checker) Check() error {
	switch {
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
		if _, ok := lastNumber(p.Answer); !ok {
			return fmt.Errorf("%s: the answer %q holds no number", p.ID, shorten(p.Answer))
		}
	case "choice":
		if _, ok := letterOf(p.Answer, p.Choices); !ok {
			return fmt.Errorf("%s: the answer %q is neither a letter nor one of its choices", p.ID, shorten(p.Answer))
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
		got := finalAnswer(text)
		return Grade{shorten(got), got != "", got != "" && c.fold(got) == c.fold(p.Answer)}
	case "choice":
		return gradeChoice(text, p)
	case "regex":
		return c.gradePattern(text, p)
	case "json":
		return c.gradeField(text, p)
	case "template":
		want := strings.ReplaceAll(c.Template, AnswerMark, p.Answer)
		right := strings.Contains(c.fold(text), c.fold(want))
		return Grade{shorten(finalAnswer(text)), strings.TrimSpace(text) != "", right}
	case "judge":
		return Grade{Got: shorten(finalAnswer(text)), Found: strings.TrimSpace(text) != ""}
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
	return Grade{shorten(got), true, right}
}

// shorten shortens an answer for the record.
func shorten(text string) string {
	const maxRunes = 120
	text = strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), "\uFFFD")
	if runes := []rune(text); len(runes) > maxRunes {
		return string(runes[:maxRunes]) + "…"
	}
	return text
}

var (
	numeralRE  = regexp.MustCompile(`\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+`)
	answerIsRE = regexp.MustCompile(`(?i)\banswer\s*(?:is|:|=)`)
)

func (c Checker) gradeNumber(text string, p Problem) Grade {
	got, ok := ExtractNumber(text)
	if !ok {
		return Grade{}
	}
	want, known := lastNumber(p.Answer)
	return Grade{strconv.FormatFloat(got, 'g', -1, 64), true, known && nearlyEqual(got, want, c.Tolerance)}
}

// nearlyEqual reports whether two numbers are equal within the tolerance and the precision of a float.
func nearlyEqual(got, want, tolerance float64) bool {
	return math.Abs(got-want) <= math.Max(tolerance, 1e-9*math.Abs(want))
}

// ExtractNumber finds the number that is the answer of a text. It is, in this order: the first
// number after the last ####; the first in the last \boxed{}; the first after the last
// "Answer:" or "answer is"; or else the last number of all.
func ExtractNumber(text string) (float64, bool) {
	if after, ok := afterLast(text, "####"); ok {
		if n, ok := firstNumber(after); ok {
			return n, true
		}
	}
	if after, ok := afterLast(text, `\boxed{`); ok {
		inside, _, _ := strings.Cut(after, "}")
		if n, ok := firstNumber(inside); ok {
			return n, true
		}
	}
	if after, ok := afterMark(text); ok {
		if n, ok := firstNumber(after); ok {
			return n, true
		}
	}
	return lastNumber(text)
}

// afterMark returns what follows the last "Answer:" or "answer is".
func afterMark(text string) (string, bool) {
	if at := answerIsRE.FindAllStringIndex(text, -1); len(at) > 0 {
		return text[at[len(at)-1][1]:], true
	}
	return "", false
}

// afterLast returns what follows the last of some words.
func afterLast(text, words string) (string, bool) {
	if i := strings.LastIndex(text, words); i >= 0 {
		return text[i+len(words):], true
	}
	return "", false
}

func firstNumber(text string) (float64, bool) {
	for _, at := range numeralRE.FindAllStringIndex(text, -1) {
		if n, ok := readNumeral(text, at); ok {
			return n, true
		}
	}
	return 0, false
}

func lastNumber(text string) (float64, bool) {
	for _, at := range slices.Backward(numeralRE.FindAllStringIndex(text, -1)) {
		if n, ok := readNumeral(text, at); ok {
			return n, true
		}
	}
	return 0, false
}

// readNumeral reads the numeral at a position. A minus before it counts unless it follows a word or number: 7-3 holds a 3.
func readNumeral(text string, at []int) (float64, bool) {
	n, err := strconv.ParseFloat(strings.ReplaceAll(text[at[0]:at[1]], ",", ""), 64)
	if err != nil {
		return 0, false // too large for a float
	}
	before := strings.TrimRight(text[:at[0]], "$€£")
	for _, minus := range []string{"-", "−"} {
		rest, ok := strings.CutSuffix(before, minus)
		if ok && !endsInWord(rest) {
			return -n, true
		}
	}
	return n, true
}

// endsInWord reports whether a text ends in a letter, a digit or a closing bracket.
func endsInWord(text string) bool {
	if text == "" {
		return false
	}
	c := text[len(text)-1]
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == ')' || c == ']' || c >= 0x80
}

// finalAnswer returns the answer of a text in words: the rest of the line after the last #### or "Answer:", or else the last
// line.
func finalAnswer(text string) string {
	if after, ok := afterLast(text, "####"); ok {
		return firstLine(after)
	}
	if after, ok := afterMark(text); ok {
		if line := firstLine(after); line != "" {
			return line
		}
	}
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(strings.Trim(strings.TrimSpace(line), "*`\"'"))
}

var (
	markedLetterRE = regexp.MustCompile(`(?i)(?:\banswer\s*(?:is|:|=)|####|\\boxed\{)[\s*(\[]*([A-J])\b`)
	loneLetterRE   = regexp.MustCompile(`\(([A-J])\)|(?:^|\s|\*)([A-J])(?:[.):*]|\s*$)`)
)

// gradeChoice finds a letter, or the words of a choice.
func gradeChoice(text string, p Problem) Grade {
	want, known := letterOf(p.Answer, p.Choices)
	got, found := chosen(text, p.Choices)
	return Grade{got, found, found && known && got == want}
}

// chosen returns the letter that is marked as the answer, or that of the choice whose words end the text, or the last
// separate letter.
func chosen(text string, choices []string) (string, bool) {
	if all := markedLetterRE.FindAllStringSubmatch(text, -1); len(all) > 0 {
		return strings.ToUpper(all[len(all)-1][1]), true
	}
	if letter, ok := letterOf(finalAnswer(text), choices); ok {
		return letter, true
	}
	if all := loneLetterRE.FindAllStringSubmatch(text, -1); len(all) > 0 {
		last := all[len(all)-1]
		return last[1] + last[2], true
	}
	return "", false
}

// letterOf reads "B", "(b)", "B. words" or the words of a choice.
func letterOf(answer string, choices []string) (string, bool) {
	plain := Checker{}.fold(answer)
	for i, c := range choices {
		if i < 10 && (Checker{}.fold(c)) == plain {
			return string(rune('A' + i)), true
		}
	}
	bare := strings.Trim(answer, " ()[].:*\n\t")
	if len(bare) > 1 && (bare[1] == '.' || bare[1] == ')' || bare[1] == ':') {
		bare = bare[:1]
	}
	if letter := strings.ToUpper(bare); len(letter) == 1 && letter >= "A" && letter <= "J" {
		return letter, true
	}
	return "", false
}

// maxObjects is the maximum number of positions at which a JSON object is tried. It bounds the time for a text that has
// only brackets.
const maxObjects = 50

// gradeField looks for the last JSON object in a text that has the field.
func (c Checker) gradeField(text string, p Problem) Grade {
	at := len(text)
	for range maxObjects {
		if at = strings.LastIndexByte(text[:at], '{'); at < 0 {
			break
		}
		var object map[string]any
		d := json.NewDecoder(strings.NewReader(text[at:]))
		d.UseNumber()
		if d.Decode(&object) != nil {
			continue
		}
		if v, ok := lookUp(object, strings.Split(c.Field, ".")); ok {
			return c.gradeValue(v, p)
		}
	}
	return Grade{}
}

func lookUp(v any, steps []string) (any, bool) {
	for _, step := range steps {
		object, ok := v.(map[string]any)
		if !ok {
			return nil, false
		}
		if v, ok = object[step]; !ok {
			return nil, false
		}
	}
	return v, true
}

// gradeValue compares numbers as numbers and everything else as text.
func (c Checker) gradeValue(v any, p Problem) Grade {
	got := fmt.Sprint(v)
	if v == nil {
		return Grade{}
	}
	right := c.fold(got) == c.fold(p.Answer)
	a, okA := wholeNumber(got)
	b, okB := wholeNumber(p.Answer)
	if okA && okB {
		right = nearlyEqual(a, b, c.Tolerance)
	}
	return Grade{shorten(got), true, right}
}

// wholeNumber reads a text that is only a number.
func wholeNumber(text string) (float64, bool) {
	text = strings.TrimSpace(text)
	at := numeralRE.FindStringIndex(text)
	if at == nil || at[1] != len(text) || strings.Trim(text[:at[0]], "-−$€£") != "" {
		return 0, false
	}
	return readNumeral(text, at)
}
