// Part arithmetic makes word problems of graded difficulty, and solves them.
//
// A problem is a small story about a stock of things: it opens with how many there are in
// the morning, then things happen to them, and the question is how many are left. The
// difficulty is how many things happen, from 1 to 8; from 3 up, some sentences hold numbers
// that have nothing to do with the question.
//
// The same seed generates the same problems. Answers are whole numbers from 0 up. Solve finds the answer of every problem
// that Generate returns, by reading it.
//
// It is not a serious test of models. With it, everything runs without a file, and the simulated provider knows the right
// answers.

package problem

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
)

// The minimum and the maximum difficulty.
const (
	Easiest = 1
	Hardest = 8
)

// ArithmeticProblem is a word problem.
type ArithmeticProblem struct {
	Question   string
	Answer     int
	Difficulty int
}

// GenerateArithmetic returns n different problems. Their difficulties cycle from the easiest to the hardest.
func GenerateArithmetic(seed uint64, n, easiest, hardest int) []ArithmeticProblem {
	easiest = min(max(easiest, Easiest), Hardest)
	hardest = min(max(hardest, easiest), Hardest)
	r := rand.New(rand.NewPCG(seed, 0x61726974686d6574))
	seen := map[string]bool{}
	var all []ArithmeticProblem
	// There are so many stories that a second try is rare; the bound is for a very large n.
	for tries := 0; len(all) < n && tries < 20*n; tries++ {
		p := story(r, easiest+len(all)%(hardest-easiest+1))
		if !seen[p.Question] {
			seen[p.Question] = true
			all = append(all, p)
		}
	}
	return all
}

// story generates one problem.
func story(r *rand.Rand, difficulty int) ArithmeticProblem {
	s := settings()[r.IntN(len(settings()))]
	have := 6 + r.IntN(40)
	lines := []string{fmt.Sprintf("A %s has %d %s in the morning.", s.place, have, s.thing)}
	for i := range difficulty {
		if difficulty > 2 && r.IntN(3) == 0 {
			lines = append(lines, fill(asides(), s, 2+r.IntN(40), r))
		}
		op, n := draw(r, have, i)
		lines = append(lines, fill(op.sentences(), s, n, r))
		have = op.apply(have, n)
	}
	lines = append(lines, fmt.Sprintf("How many %s are there at the end?", s.thing))
	return ArithmeticProblem{Question: strings.Join(lines, " "), Answer: have, Difficulty: difficulty}
}

// draw picks an operation that is possible with that many things, and its number.
func draw(r *rand.Rand, have, place int) (operation, int) {
	ops := operations()
	for range 20 {
		switch op := ops[r.IntN(len(ops))]; op {
		case take:
			if have > 3 {
				return op, 1 + r.IntN(have-1)
			}
		case times:
			if place > 0 && have <= 60 {
				return op, 2 + r.IntN(3)
			}
		case share:
			for d := 2; d <= 6; d++ {
				if have >= 12 && have%d == 0 {
					return op, d
				}
			}
		default:
			return op, 2 + r.IntN(30)
		}
	}
	return ops[0], 2 + r.IntN(30)
}

// fill picks a sentence and inserts the number and the thing.
func fill(sentences []string, s setting, n int, r *rand.Rand) string {
	text := sentences[r.IntN(len(sentences))]
	return strings.NewReplacer("NUMBER", strconv.Itoa(n), "THING", s.thing, "PLACE", s.place).Replace(text)
}

var opening = regexp.MustCompile(`A [a-z ]+ has (\d+) [a-z ]+ in the morning\.`)

// SolveArithmetic reads the first problem in a text. It returns where the problem begins, the
// numbers of things there are after the opening and after each sentence that counts, the
// last of which is the answer, and whether there is a problem at all.
func SolveArithmetic(text string) (begins int, totals []int, ok bool) {
	at := opening.FindStringSubmatchIndex(text)
	if at == nil {
		return 0, nil, false
	}
	have, err := strconv.Atoi(text[at[2]:at[3]])
	if err != nil {
		return 0, nil, false // too many digits
	}
	totals = []int{have}
	for sentence := range strings.SplitSeq(text[at[1]:], ". ") {
		if strings.Contains(sentence, "How many ") {
			return at[0], totals, true
		}
		op, known := operationOf(sentence)
		n, err := strconv.Atoi(digits(sentence))
		if !known || err != nil {
			continue
		}
		have = op.apply(have, n)
		totals = append(totals, have)
	}
	return 0, nil, false
}

// digits returns the first number of a sentence.
func digits(sentence string) string {
	isDigit := func(r rune) bool { return r >= '0' && r <= '9' }
	from := strings.IndexFunc(sentence, isDigit)
	if from < 0 {
		return ""
	}
	rest := sentence[from:]
	if to := strings.IndexFunc(rest, func(r rune) bool { return !isDigit(r) }); to >= 0 {
		return rest[:to]
	}
	return rest
}
