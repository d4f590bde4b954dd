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

// ArithmeticProblem is a word problem: a small story about a stock of things. It opens with how many there are in the
// morning, then things happen to them, and the question is how many are left. The difficulty is how many things happen.
// From 3 up, some sentences hold numbers that have nothing to do with the question.
//
// It is not a serious test of models. With it, everything runs without a file, and the simulated provider knows the right
// answers.
type ArithmeticProblem struct {
	Question   string
	Answer     int
	Difficulty int
}

// GenerateArithmetic returns n different problems, the same for the same seed. Their difficulties cycle from the easiest to the hardest.
func GenerateArithmetic(seed uint64, n, easiest, hardest int) []ArithmeticProblem {
	easiest = min(max(easiest, Easiest), Hardest)
	hardest = min(max(hardest, easiest), Hardest)
	r := rand.New(rand.NewPCG(seed, 0x61726974686d6574))
	seen := map[string]bool{}
	var all []ArithmeticProblem
	// There are so many stories that a second try is rare; the bound is for a very large n.
	for tries := 0; len(all) < n && tries < 20*n; tries++ {
		p := newStory(r, easiest+len(all)%(hardest-easiest+1))
		if !seen[p.Question] {
			seen[p.Question] = true
			all = append(all, p)
		}
	}
	return all
}

// newStory generates one problem.
func newStory(r *rand.Rand, difficulty int) ArithmeticProblem {
	s := settings()[r.IntN(len(settings()))]
	have := 6 + r.IntN(40)
	lines := []string{fmt.Sprintf("A %s has %d %s in the morning.", s.place, have, s.thing)}
	for i := range difficulty {
		if difficulty > 2 && r.IntN(3) == 0 {
			lines = append(lines, fillSentence(asides(), s, 2+r.IntN(40), r))
		}
		op, n := drawOperation(r, have, i)
		lines = append(lines, fillSentence(op.sentences(), s, n, r))
		have = op.apply(have, n)
	}
	lines = append(lines, fmt.Sprintf("How many %s are there at the end?", s.thing))
	return ArithmeticProblem{Question: strings.Join(lines, " "), Answer: have, Difficulty: difficulty}
}

// drawOperation picks an operation that is possible with that many things, and its number.
func drawOperation(r *rand.Rand, have, place int) (operation, int) {
	ops := operations()
	for range 20 {
		switch op := ops[r.IntN(len(ops))]; op {
		case opTake:
			if have > 3 {
				return op, 1 + r.IntN(have-1)
			}
		case opTimes:
			if place > 0 && have <= 60 {
				return op, 2 + r.IntN(3)
			}
		case opShare:
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

// fillSentence picks a sentence and inserts the number and the thing.
func fillSentence(sentences []string, s setting, n int, r *rand.Rand) string {
	text := sentences[r.IntN(len(sentences))]
	return strings.NewReplacer("NUMBER", strconv.Itoa(n), "THING", s.thing, "PLACE", s.place).Replace(text)
}

var openingRE = regexp.MustCompile(`A [a-z ]+ has (\d+) [a-z ]+ in the morning\.`)

// SolveArithmetic reads the first problem in a text. It returns where the problem begins, the
// numbers of things there are after the opening and after each sentence that counts, the
// last of which is the answer, and whether there is a problem at all.
func SolveArithmetic(text string) (begins int, totals []int, ok bool) {
	at := openingRE.FindStringSubmatchIndex(text)
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
		n, err := strconv.Atoi(firstDigits(sentence))
		if !known || err != nil {
			continue
		}
		have = op.apply(have, n)
		totals = append(totals, have)
	}
	return 0, nil, false
}

// firstDigits returns the first number of a sentence.
func firstDigits(sentence string) string {
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

// setting is where a story takes place.
type setting struct{ place, thing string }

func settings() []setting {
	return []setting{
		{"bakery", "loaves"}, {"harbour", "crates"}, {"library", "books"}, {"nursery", "seedlings"}, {"workshop", "chairs"},
		{"pottery", "bowls"}, {"kitchen", "jars"}, {"orchard", "baskets"}, {"theatre", "masks"}, {"printing house", "posters"},
		{"museum", "coins"}, {"school", "notebooks"}, {"farm", "eggs"}, {"dairy", "cheeses"}, {"depot", "tyres"}, {"garden", "bulbs"},
	}
}

// operation is something that happens to the things. It is known by words that are in each
// of its sentences, and in no other.
type operation string

const (
	opAdd   operation = "more"
	opTake  operation = "of them"
	opTimes operation = "times as many"
	opShare operation = "equal shares"
)

// operations lists all operations. The first is always possible.
func operations() []operation { return []operation{opAdd, opTake, opTimes, opShare} }

// sentences returns the sentences of an operation.
func (o operation) sentences() []string {
	switch o {
	case opTake:
		return []string{"Then NUMBER of them are sold.", "In the rain NUMBER of them are lost.", "The owner gives NUMBER of them away.", "A neighbour borrows NUMBER of them."}
	case opTimes:
		return []string{"A large delivery makes it NUMBER times as many.", "After an exchange there are NUMBER times as many THING."}
	case opShare:
		return []string{"They are put into NUMBER equal shares, and only one share stays.", "The stock is split into NUMBER equal shares; all but one share leave."}
	}
	return []string{"A cart brings NUMBER more.", "By noon NUMBER more THING arrive.", "The PLACE buys NUMBER more THING.", "Somebody finds NUMBER more in the cellar."}
}

// apply returns the number of things after an operation.
func (o operation) apply(have, n int) int {
	switch o {
	case opTake:
		return max(0, have-n)
	case opTimes:
		return have * n
	case opShare:
		return have / max(1, n)
	}
	return have + n
}

// asides hold numbers that do not count.
func asides() []string {
	return []string{
		"The PLACE was founded NUMBER years ago.", "It is NUMBER degrees outside.", "A visitor walks NUMBER minutes to get there.", "The door has number NUMBER.",
	}
}

// operationOf returns the operation of a sentence.
func operationOf(sentence string) (operation, bool) {
	for _, op := range operations() {
		if strings.Contains(sentence, string(op)) {
			return op, true
		}
	}
	return "", false
}
