package rollout

import (
	"fmt"
	"regexp"
)

var (
	firstPuzzle = regexp.MustCompile(`The numbers are (\d[\d, ]*)\. Make (\d{1,9})\.`)
	sameAgain   = regexp.MustCompile(`Try again: make (\d{1,9}) of (\d[\d, ]*)\.`)
	digits      = regexp.MustCompile(`\d{1,9}`)
)

// express tries random expressions, more with more skill, and answers with the one closest to the target.
func (t *turn) express() (string, bool) {
	var list string
	var target int
	if m := sameAgain.FindStringSubmatch(t.asked()); m != nil {
		list, target = m[2], whole(m[1])
	} else if m := firstPuzzle.FindStringSubmatch(t.asked()); m != nil {
		list, target = m[1], whole(m[2])
	} else {
		return "", false
	}
	var given []int
	for _, d := range digits.FindAllString(list, 8) {
		given = append(given, whole(d))
	}
	best, missed := fmt.Sprint(given[0]), 1<<40
	for range int(80 * t.skill * t.skill) {
		if text, by := t.combine(given, target); by < missed {
			best, missed = text, by
		}
	}
	said := "I have come close, but not closer."
	if missed == 0 {
		said = t.pick("That works out.", "I have tried some, and this is it.")
	}
	return fmt.Sprintf("%s\n<answer>%s</answer>", said, best), true
}

// combine combines the numbers in random order until the target is reached, and returns by how much it missed.
func (t *turn) combine(given []int, target int) (text string, missed int) {
	order := t.Perm(len(given))
	value := given[order[0]]
	text = fmt.Sprint(value)
	for i, k := range order[1:] {
		if value == target {
			break
		}
		if i > 0 {
			text = "(" + text + ")"
		}
		n, sign := given[k], "+"
		switch op := t.IntN(4); {
		case op == 0 && value < 1_000_000 && n < 1_000_000:
			value, sign = value*n, "*"
		case op == 1 && value > n:
			value, sign = value-n, "-"
		case op == 2 && n > 0 && value%n == 0:
			value, sign = value/n, "/"
		default:
			value += n
		}
		text += fmt.Sprintf(" %s %d", sign, n)
	}
	return text, max(value-target, target-value)
}
