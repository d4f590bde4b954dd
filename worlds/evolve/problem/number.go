package problem

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var (
	numeral = regexp.MustCompile(`\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+`)
	marked  = regexp.MustCompile(`(?i)\banswer\s*(?:is|:|=)`)
)

func (c Checker) gradeNumber(text string, p Problem) Grade {
	got, ok := ExtractNumber(text)
	if !ok {
		return Grade{}
	}
	want, known := last(p.Answer)
	return Grade{strconv.FormatFloat(got, 'g', -1, 64), true, known && near(got, want, c.Tolerance)}
}

// near reports whether two numbers are equal within the tolerance and the precision of a float.
func near(got, want, tolerance float64) bool {
	return math.Abs(got-want) <= math.Max(tolerance, 1e-9*math.Abs(want))
}

// ExtractNumber finds the number that is the answer of a text. It is, in this order: the first
// number after the last ####; the first in the last \boxed{}; the first after the last
// "Answer:" or "answer is"; or else the last number of all.
func ExtractNumber(text string) (float64, bool) {
	if after, ok := afterLast(text, "####"); ok {
		if n, ok := first(after); ok {
			return n, true
		}
	}
	if after, ok := afterLast(text, `\boxed{`); ok {
		inside, _, _ := strings.Cut(after, "}")
		if n, ok := first(inside); ok {
			return n, true
		}
	}
	if after, ok := afterMark(text); ok {
		if n, ok := first(after); ok {
			return n, true
		}
	}
	return last(text)
}

// afterMark returns what follows the last "Answer:" or "answer is".
func afterMark(text string) (string, bool) {
	if at := marked.FindAllStringIndex(text, -1); len(at) > 0 {
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

func first(text string) (float64, bool) {
	for _, at := range numeral.FindAllStringIndex(text, -1) {
		if n, ok := value(text, at); ok {
			return n, true
		}
	}
	return 0, false
}

func last(text string) (float64, bool) {
	for _, at := range slices.Backward(numeral.FindAllStringIndex(text, -1)) {
		if n, ok := value(text, at); ok {
			return n, true
		}
	}
	return 0, false
}

// value reads the numeral at a position. A minus before it counts unless it follows a word or number: 7-3 holds a 3.
func value(text string, at []int) (float64, bool) {
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
