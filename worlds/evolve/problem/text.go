package problem

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// final returns the answer of a text in words: the rest of the line after the last #### or "Answer:", or else the last
// line.
func final(text string) string {
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
	markedLetter = regexp.MustCompile(`(?i)(?:\banswer\s*(?:is|:|=)|####|\\boxed\{)[\s*(\[]*([A-J])\b`)
	loneLetter   = regexp.MustCompile(`\(([A-J])\)|(?:^|\s|\*)([A-J])(?:[.):*]|\s*$)`)
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
	if all := markedLetter.FindAllStringSubmatch(text, -1); len(all) > 0 {
		return strings.ToUpper(all[len(all)-1][1]), true
	}
	if letter, ok := letterOf(final(text), choices); ok {
		return letter, true
	}
	if all := loneLetter.FindAllStringSubmatch(text, -1); len(all) > 0 {
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
		if v, ok := dig(object, strings.Split(c.Field, ".")); ok {
			return c.gradeValue(v, p)
		}
	}
	return Grade{}
}

func dig(v any, steps []string) (any, bool) {
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
	a, okA := wholly(got)
	b, okB := wholly(p.Answer)
	if okA && okB {
		right = near(a, b, c.Tolerance)
	}
	return Grade{short(got), true, right}
}

// wholly reads a text that is only a number.
func wholly(text string) (float64, bool) {
	text = strings.TrimSpace(text)
	at := numeral.FindStringIndex(text)
	if at == nil || at[1] != len(text) || strings.Trim(text[:at[0]], "-−$€£") != "" {
		return 0, false
	}
	return value(text, at)
}
