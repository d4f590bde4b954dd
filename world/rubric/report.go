package rubric

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"parley/internal/kit/statmath"
	"parley/stats"
	"parley/world"
	"parley/world/exhibit"
)

// confidence is that of all intervals.
const confidence = 0.95

// Report collects ratings, and shows how far judges agree, what their answers go with, and answers that are texts. Its zero value is empty.
type Report struct{ by map[string]*question }

// question is what judges or seats answered to one question.
type question struct {
	Question
	things rated
	judges [][]string // of each thing, in the order of its values
	rating map[string]*judged
	again  map[string]*rated // by judge: what it chose both times
	chosen []*cluster        // by choice, if they are categories
	count  int               // of texts
	texts  [][]any           // rows of the first of them
}

// rated is things that were rated several times, with what decides whether they are independent.
type rated struct {
	things []statmath.Rated
	units  []world.Unit
}

func (r *rated) add(unit world.Unit, values ...float64) {
	r.things, r.units = append(r.things, statmath.Rated{Values: values}), append(r.units, unit)
}

// agreement returns what of computes of the things and their clusters.
func (r *rated) agreement(of func([]statmath.Rated, statmath.Scale, float64) stats.Quantity, scale statmath.Scale) stats.Quantity {
	return world.Clustered(r.units, func(clusters []int) stats.Quantity {
		for i, c := range clusters {
			r.things[i].Cluster = c
		}
		return of(r.things, scale, confidence)
	})
}

// cluster is the answers of one category.
type cluster struct {
	share    world.Sample
	count    int
	episodes exhibit.Episodes // examples
	reason   string           // of the first
}

// maxTexts limits how many texts a report has for each question.
const maxTexts = 20

// judged is what one judge answered.
type judged struct {
	values, lengths []float64
	units           []world.Unit
	listed          int          // answers that are choices
	first           world.Sample // whether the first of them was chosen
}

// Add takes the ratings of an episode, by the questions of its params.
func (e *Report) Add(unit world.Unit, episode int, questions map[string]Question, ratings []Rating) {
	things := map[[2]string]int{}
	for _, r := range ratings {
		key := r.Question
		if questions[key].Text {
			key += " in words" // a question with categories is first asked so
		}
		q, ok := e.by[key]
		if !ok {
			q = &question{Question: questions[r.Question], rating: map[string]*judged{}, again: map[string]*rated{}}
			if e.by == nil {
				e.by = map[string]*question{}
			}
			e.by[key] = q
		}
		if q.Text {
			if q.count++; q.count <= maxTexts {
				q.texts = append(q.texts, []any{r.Question, exhibit.Episodes{episode}, r.Seat, r.Judge, r.Text})
			}
			continue
		}
		if r.Again {
			q.repeat(unit, r, ratings)
			continue
		}
		q.cluster(unit, episode, r)
		at, ok := things[[2]string{r.Question, r.Seat}]
		if !ok {
			at = len(q.judges)
			things[[2]string{r.Question, r.Seat}] = at
			q.things.add(unit)
			q.judges = append(q.judges, nil)
		}
		thing := &q.things.things[at]
		thing.Values, q.judges[at] = append(thing.Values, r.Value), append(q.judges[at], r.Judge)
		j := q.rating[r.Judge]
		if j == nil {
			j = &judged{first: world.Sample{Bounds: world.Share()}}
			q.rating[r.Judge] = j
		}
		j.add(unit, r)
	}
}

// repeat takes a second choice of a judge, beside its first.
func (q *question) repeat(unit world.Unit, r Rating, all []Rating) {
	for _, first := range all {
		if !first.Again && first.Question == r.Question && first.Seat == r.Seat && first.Judge == r.Judge {
			if q.again[r.Judge] == nil {
				q.again[r.Judge] = &rated{}
			}
			q.again[r.Judge].add(unit, first.Value, r.Value)
		}
	}
}

// maxExamples is how many episodes a category names.
const maxExamples = 5

// cluster counts a choice of a category.
func (q *question) cluster(unit world.Unit, episode int, r Rating) {
	if q.Categories == 0 {
		return
	}
	for k := range q.Choices {
		if len(q.chosen) <= k {
			q.chosen = append(q.chosen, &cluster{share: world.Sample{Bounds: world.Share()}})
		}
		c, chosen := q.chosen[k], int(r.Value) == k
		if c.share.Add(unit, exhibit.Indicator(chosen)); !chosen {
			continue
		}
		c.count++
		if len(c.episodes) < maxExamples && !slices.Contains(c.episodes, episode) {
			c.episodes = append(c.episodes, episode)
		}
		if c.reason == "" {
			c.reason = r.Text
		}
	}
}

func (j *judged) add(unit world.Unit, r Rating) {
	j.values, j.lengths, j.units = append(j.values, r.Value), append(j.lengths, float64(r.Length)), append(j.units, unit)
	if r.Position == 0 {
		return
	}
	j.listed++
	j.first.Add(unit, exhibit.Indicator(r.Position == 1))
}

// AddTo adds to a page how far judges agree, what their answers go with, and answers that are texts.
func (e *Report) AddTo(page *exhibit.Page) {
	agree := exhibit.Grid{Columns: []string{"question", "judges", "rated by two or more", "alpha", "from", "to"}}
	pairs := exhibit.Grid{Columns: []string{"question", "judge", "other judge", "rated by both", "kappa", "from", "to"}}
	var tests biasTests
	texts := exhibit.Grid{Columns: []string{"question", "episode", "about", "by", "answer"}}
	found := exhibit.Grid{Columns: []string{"question", "category", "answers", "share", "episodes such as", "reason in the first"}}
	again := exhibit.Grid{Columns: []string{"question", "judge", "judged twice", "alpha", "from", "to"}}
	for _, n := range slices.Sorted(maps.Keys(e.by)) {
		q := e.by[n]
		for k, c := range q.chosen {
			found.Rows = append(found.Rows, []any{n, q.Choices[k], c.count, &c.share, c.episodes, c.reason})
		}
		for _, judge := range slices.Sorted(maps.Keys(q.again)) {
			a := q.again[judge].agreement(statmath.Alpha, statmath.Nominal)
			again.Rows = append(again.Rows, append([]any{n, judge, a.N}, quantity(a)...))
		}
		texts.Rows = append(texts.Rows, q.texts...)
		if len(q.rating) > 1 && q.by() == byJudges {
			a := q.things.agreement(statmath.Alpha, q.scale())
			agree.Rows = append(agree.Rows, append([]any{n, len(q.rating), a.N}, quantity(a)...))
			pairs.Rows = append(pairs.Rows, q.pairs(n)...)
		}
		tests.add(n, q)
	}
	length, position := tests.grids()
	page.Add("categories", "Categories of reasons", "How many answers of judges are in each category, and their share with a 95% interval. The episodes are those of the scored run: parley show RUN --episode N reads one.", found)
	page.Add("agreement-on-second-look", "Agreement with the first choice", "A sample is judged twice, with the categories in another order: Krippendorff's alpha of a judge with itself, with a 95% interval.", again)
	page.Add("agreement-of-judges", "Agreement of judges", "Krippendorff's alpha with a 95% interval: 1 if judges always agree, 0 if they agree as often as chance would make them. Below 0.67 it is usual not to draw conclusions.", agree)
	page.Add("agreement-of-pairs", "Agreement of each two judges", "Cohen's kappa with a 95% interval, which means what alpha does. On a scale it is the weighted one: a disagreement counts by the square of its distance.", pairs)
	page.Add("length-bias", "Do judges prefer long texts?", "Spearman's correlation between the answer and the length of what was judged. For a choice or a category, such as tone: warm, the answer is whether it was chosen; one that was never or always chosen has no row, and of two choices the first stands for both. It can have a good reason: what is better may be longer. "+corrected, length)
	page.Add("position-bias", "Do judges prefer the first choice?", "How often a judge chose what was first in its list. Each call has its own order, so a judge without a bias has the expected share. "+corrected, position)
	page.Add("texts", "Answers in words", fmt.Sprintf("The first answers to each question, at most %d.", maxTexts), texts)
}

// quantity returns a value and its interval as cells.
func quantity(q stats.Quantity) []any {
	if !q.Known() {
		return []any{"unknown", "", ""}
	}
	return []any{q.Value, q.Low, q.High}
}

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
			var both rated
			for k, thing := range q.things.things {
				x, y := slices.Index(q.judges[k], a), slices.Index(q.judges[k], b)
				if x >= 0 && y >= 0 {
					both.add(q.things.units[k], thing.Values[x], thing.Values[y])
				}
			}
			kappa := both.agreement(statmath.RaterKappa, q.scale())
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
			b.length = append(b.length, lengthTest(name, judge, j, j.values))
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
			b.choice = append(b.choice, lengthTest(choiceName(name, choice), judge, j, chosen))
		}
	}
}

// lengthTest tests whether values go with the length.
func lengthTest(name, judge string, j *judged, values []float64) biasTest {
	p := 0.0 // as for intervals, what is less certain counts
	c := world.Clustered(j.units, func(clusters []int) stats.Quantity {
		p = max(p, statmath.Unrelated(j.lengths, values, clusters))
		return statmath.Spearman(j.lengths, values, clusters, confidence)
	})
	return biasTest{append([]any{name, judge, len(values)}, quantity(c)...), p}
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
func (b *biasTests) grids() (length, position exhibit.Grid) {
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

// chose returns 1 for each answer that is a choice, and 0 for the others.
func chose(answers []float64, choice int) []float64 {
	out := make([]float64, len(answers))
	for i, v := range answers {
		out[i] = exhibit.Indicator(int(v) == choice)
	}
	return out
}
