package rollout

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

var (
	sumAsked   = regexp.MustCompile(`What is (\d{1,9}(?: [-+*] \d{1,9}){1,20})\?\s*$`)
	quantityRE = regexp.MustCompile(`\d{1,6}:\d{2}\b|\d{1,9}|[a-z]+`)
	lastNumber = regexp.MustCompile(`(\d{1,9})\D*$`)
)

// calculate solves a sum, operation by operation, each of which may go wrong: products more often than sums.
// It guesses the answer of other questions.
func (t *turn) calculate() (string, bool) {
	if t.asked() == "" {
		return "", false
	}
	m := sumAsked.FindStringSubmatch(t.asked())
	if m == nil {
		return t.estimate(), true
	}
	fields := strings.Fields(m[1])
	// Without this hint it may calculate from left to right.
	inOrder := !strings.Contains(t.rules, "products first") && t.fails(1-(1-t.skill)/3)
	var work strings.Builder
	terms, signs := []int{whole(fields[0])}, []string{}
	for i := 1; i+1 < len(fields); i += 2 {
		last, n := len(terms)-1, whole(fields[i+1])
		if fields[i] == "*" || inOrder {
			terms[last] = t.operation(&work, terms[last], fields[i], n)
			continue
		}
		terms, signs = append(terms, n), append(signs, fields[i])
	}
	answer := terms[0]
	for i, sign := range signs {
		answer = t.operation(&work, answer, sign, terms[i+1])
	}
	return fmt.Sprintf("%s\\boxed{%d}", work.String(), answer), true
}

// operation does one step of a sum and writes it down.
func (t *turn) operation(work *strings.Builder, a int, sign string, b int) int {
	result, chance := a+b, 1-0.3*(1-t.skill)
	switch sign {
	case "-":
		result = a - b
	case "*":
		result, chance = a*b, 1-0.7*(1-t.skill)
	}
	if t.fails(chance) {
		result += []int{-10, -2, -1, 1, 2, 10}[t.IntN(6)]
	}
	fmt.Fprintf(work, "%d %s %d = %d\n", a, sign, b, result)
	return result
}

// estimate combines the numbers of a question in a random way, which is sometimes right.
func (t *turn) estimate() string {
	numbers := quantities(t.asked())
	if len(numbers) == 0 {
		return fmt.Sprintf("I can only guess.\n\\boxed{%d}", 1+t.IntN(20))
	}
	t.Shuffle(len(numbers), func(i, j int) { numbers[i], numbers[j] = numbers[j], numbers[i] })
	answer := numbers[0]
	for _, n := range numbers[1:] {
		switch op := t.IntN(4); {
		case op == 0:
			answer += n
		case op == 1 && answer < 1_000_000 && n < 1_000_000:
			answer *= n
		case op == 2 && n > 0 && answer%n == 0:
			answer /= n
		default:
			answer = max(answer-n, n-answer)
		}
	}
	return fmt.Sprintf("%s\n\\boxed{%d}", t.pick("I put the numbers together.", "That should be it.", "I am not sure."), answer)
}

// quantities returns the first numbers of a text: in digits, in words, and times of day in minutes.
func quantities(text string) (out []int) {
	names := strings.Fields("two three four five six seven eight nine ten eleven twelve")
	for _, word := range quantityRE.FindAllString(strings.ToLower(text), 400) {
		if hours, minutes, ok := strings.Cut(word, ":"); ok {
			out = append(out, whole(hours)*60+whole(minutes))
		} else if word[0] <= '9' {
			out = append(out, whole(word))
		}
		for i, name := range names {
			if word == name {
				out = append(out, i+2)
			}
		}
		if len(out) == 5 {
			break
		}
	}
	return out
}

// count returns the next number, or one near it.
func (t *turn) count() (string, bool) {
	m := lastNumber.FindStringSubmatch(t.asked())
	if m == nil {
		return "", false
	}
	next := whole(m[1]) + 1
	if t.fails(t.skill) {
		next += []int{-1, 1, 10}[t.IntN(3)]
	}
	return strconv.Itoa(next), true
}

// whole reads digits.
func whole(digits string) int {
	n, err := strconv.Atoi(digits)
	if err != nil {
		return 0
	}
	return n
}
