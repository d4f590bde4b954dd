package score

import (
	"maps"
	"math"
	"slices"

	"parley/internal/kit/statmath"
	"parley/world"
)

// corrected explains the last columns of the tables about bias.
const corrected = "There is a sign of bias if p is below 0.05. Since the more tests there are, the more of them find something by chance, p is corrected by Holm for all tests of the same kind in this report: those of position, those of length for choices and categories, and those of length for other answers. Intervals are not corrected."

// scale says what the distance between two answers means.
func (q *question) scale() statmath.Scale {
	if len(q.Choices) > 0 {
		return statmath.Nominal
	}
	return statmath.Ordinal
}

// pairs returns how far each two judges agree, as rows.
func (q *question) pairs(name string) (rows [][]any) {
	judges := slices.Sorted(maps.Keys(q.rating))
	for i, a := range judges {
		for _, b := range judges[i+1:] {
			var both []statmath.Rated
			for k, thing := range q.things {
				x, y := slices.Index(q.judges[k], a), slices.Index(q.judges[k], b)
				if x >= 0 && y >= 0 {
					both = append(both, statmath.Rated{Cluster: thing.Cluster, Values: []float64{thing.Values[x], thing.Values[y]}})
				}
			}
			kappa := statmath.RaterKappa(both, q.scale(), confidence)
			rows = append(rows, append([]any{name, a, b, kappa.N}, quantity(kappa)...))
		}
	}
	return rows
}

// biasTests are tests of whether answers of judges go with what should not matter. Each kind is corrected by itself: a
// question has a test for each of its choices, and these depend on each other. They must not hide what another question shows.
type biasTests struct{ length, choice, position []biasTest }

// biasTest is a row of a table, and the p-value of no bias.
type biasTest struct {
	row []any
	p   float64 // NaN: not known
}

// add tests the answers to a question.
func (b *biasTests) add(name string, q *question) {
	for _, judge := range slices.Sorted(maps.Keys(q.rating)) {
		j := q.rating[judge]
		switch {
		case q.by() != byJudges:
		case len(q.Choices) > 0:
			b.choices(name, judge, q.Choices, j)
		default:
			b.length = append(b.length, long(name, judge, j.lengths, j.values))
		}
		if len(q.Choices) > 0 && j.listed > 0 {
			expected := 1 / float64(len(q.Choices))
			b.position = append(b.position, biasTest{[]any{name, judge, j.listed, &j.first, expected}, differs(&j.first, expected)})
		}
	}
}

// choices tests for each choice whether it goes with the length. Of two choices one says it for both.
func (b *biasTests) choices(name, judge string, choices []string, j *judged) {
	for k, choice := range choices {
		if k == 1 && len(choices) == 2 {
			break
		}
		chosen := chose(j.values, k)
		if slices.Contains(chosen, 0) && slices.Contains(chosen, 1) {
			b.choice = append(b.choice, long(choiceName(name, choice), judge, j.lengths, chosen))
		}
	}
}

// long tests whether values go with the length.
func long(name, judge string, lengths, values []float64) biasTest {
	c := statmath.Spearman(lengths, values, confidence)
	return biasTest{append([]any{name, judge, len(values)}, quantity(c)...), statmath.Unrelated(lengths, values)}
}

// differs returns the p-value of an expected mean: the least share by which confidence must be below 1 for the interval to
// leave it out. It is to five digits.
func differs(s *world.Sample, expected float64) float64 {
	if !s.Estimate(confidence).Known() {
		return math.NaN()
	}
	low, high := 0.0, 1.0 // confidence
	for high-low > 1e-5 {
		middle := (low + high) / 2
		if q := s.Estimate(middle); q.Low > expected || q.High < expected {
			low = middle
		} else {
			high = middle
		}
	}
	return 1 - low
}

// grids returns the tables.
func (b *biasTests) grids() (length, position world.Grid) {
	length.Columns = []string{"question", "judge", "answers", "correlation", "from", "to", "p", "sign of bias"}
	position.Columns = []string{"question", "judge", "answers", "first chosen", "expected", "p", "sign of bias"}
	length.Rows, position.Rows = append(family(b.length), family(b.choice)...), family(b.position)
	return length, position
}

// family returns rows with p-values that are corrected for the number of tests.
func family(tests []biasTest) (rows [][]any) {
	var ps []float64
	for _, t := range tests {
		ps = append(ps, t.p)
	}
	for i, p := range statmath.Holm(ps) {
		shown := []any{p, "no"}
		switch {
		case math.IsNaN(p):
			shown = []any{"", ""}
		case p < 1-confidence:
			shown[1] = "yes"
		}
		rows = append(rows, append(tests[i].row, shown...))
	}
	return rows
}
