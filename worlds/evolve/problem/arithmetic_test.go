package problem

import (
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestSolve checks that Solve finds the answer that Generate computed.
func TestSolve(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		easiest := rapid.IntRange(Easiest, Hardest).Draw(t, "easiest")
		for _, p := range GenerateArithmetic(seed, 20, easiest, Hardest) {
			begins, totals, ok := SolveArithmetic("Think 3 times as many. " + p.Question + " Well?")
			if !ok || totals[len(totals)-1] != p.Answer || len(totals) != p.Difficulty+1 || begins != len("Think 3 times as many. ") {
				t.Fatalf("%s: %d, solved as %v (%v) from %d on", p.Question, p.Answer, totals, ok, begins)
			}
			if p.Answer < 0 || p.Answer > 1_000_000 {
				t.Fatalf("%s: %d", p.Question, p.Answer)
			}
		}
	})
}

func TestGenerate(t *testing.T) {
	t.Parallel()
	all := GenerateArithmetic(3, 400, 2, 4)
	seen := map[string]bool{}
	by := map[int]int{}
	for _, p := range all {
		if seen[p.Question] {
			t.Errorf("twice: %s", p.Question)
		}
		seen[p.Question] = true
		by[p.Difficulty]++
	}
	if len(all) != 400 || by[2] < 133 || by[3] < 133 || by[4] < 133 {
		t.Errorf("%d problems, by difficulty %v", len(all), by)
	}
	if !reflect.DeepEqual(all, GenerateArithmetic(3, 400, 2, 4)) || reflect.DeepEqual(all[:9], GenerateArithmetic(4, 9, 2, 4)) {
		t.Error("problems depend on the seed, and on nothing else")
	}
	if odd := GenerateArithmetic(1, 3, -5, 99); len(odd) != 3 || odd[0].Difficulty != Easiest {
		t.Errorf("difficulties out of range: %+v", odd)
	}
	if n := len(GenerateArithmetic(1, -1, 1, 1)); n != 0 {
		t.Errorf("%d problems", n)
	}
}

// TestKeys checks that one word identifies the operation of a sentence, and that an aside has no such word.
func TestKeys(t *testing.T) {
	t.Parallel()
	for _, op := range operations() {
		for _, s := range op.sentences() {
			if got, ok := operationOf(s); !ok || got != op || strings.Count(s, ".") != 1 {
				t.Errorf("%q is %s", s, got)
			}
		}
	}
	for _, s := range asides() {
		if op, ok := operationOf(s); ok {
			t.Errorf("%q is %s", s, op)
		}
	}
}

func TestSolveNothing(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "How many?", "A bakery has 3 loaves in the morning.", "A bakery has 3 loaves in the morning. 2 of them are sold.",
		"A bakery has 99999999999999999999999 loaves in the morning. How many loaves are there at the end?",
	} {
		if _, totals, ok := SolveArithmetic(text); ok {
			t.Errorf("%q is solved: %v", text, totals)
		}
	}
}
