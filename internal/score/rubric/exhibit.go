package rubric

import (
	"encoding/json"
	"maps"
	"slices"

	"parley/internal/statmath/raters"
	"parley/stats"
	"parley/world"
)

// confidence is that of all intervals.
const confidence = 0.95

// Exhibitor starts the part of a report about judges.
func (*definition) Exhibitor() world.Exhibitor { return &exhibitor{by: map[string]*question{}} }

// exhibitor collects ratings by question.
type exhibitor struct{ by map[string]*question }

// question is what judges answered to one question.
type question struct {
	choices int // how many choices there are; 0: it has a scale, or is about yes and no
	things  []raters.Rated
	rating  map[string]*judged
}

// judged is what one judge answered.
type judged struct {
	values, lengths []float64
	listed          int          // answers that are choices
	first           world.Sample // whether the first of them was chosen
}

// Add takes the ratings of an episode.
func (e *exhibitor) Add(p world.Played) {
	var ratings []Rating
	var params Params
	raw, _ := p.Outcome.Data.(json.RawMessage)
	if p.Outcome.Failed != "" || json.Unmarshal(raw, &ratings) != nil || json.Unmarshal(p.Spec.Params, &params) != nil {
		return
	}
	things := map[[2]string]int{}
	for _, r := range ratings {
		q, ok := e.by[r.Question]
		if !ok {
			q = &question{choices: len(params.Questions[r.Question].Choices), rating: map[string]*judged{}}
			e.by[r.Question] = q
		}
		at, ok := things[[2]string{r.Question, r.Seat}]
		if !ok {
			at = len(q.things)
			things[[2]string{r.Question, r.Seat}] = at
			q.things = append(q.things, raters.Rated{Cluster: p.Episode})
		}
		q.things[at].Values = append(q.things[at].Values, r.Value)
		j := q.rating[r.Judge]
		if j == nil {
			j = &judged{first: world.Sample{Bounds: world.Share()}}
			q.rating[r.Judge] = j
		}
		j.add(p.Unit, r)
	}
}

func (j *judged) add(unit world.Unit, r Rating) {
	if r.Position == 0 {
		j.values, j.lengths = append(j.values, r.Value), append(j.lengths, float64(r.Length))
		return
	}
	first := 0.0
	if r.Position == 1 {
		first = 1
	}
	j.listed++
	j.first.Add(unit, first)
}

// Exhibits returns how far judges agree, and what their answers go with.
func (e *exhibitor) Exhibits() []world.Exhibit {
	agree := world.Grid{Columns: []string{"question", "judges", "rated by two or more", "alpha", "from", "to"}}
	length := world.Grid{Columns: []string{"question", "judge", "answers", "correlation", "from", "to", "sign of bias"}}
	position := world.Grid{Columns: []string{"question", "judge", "answers", "first chosen", "expected", "sign of bias"}}
	for _, n := range slices.Sorted(maps.Keys(e.by)) {
		q := e.by[n]
		if len(q.rating) > 1 {
			scale := raters.Ordinal
			if q.choices > 0 {
				scale = raters.Nominal
			}
			a := raters.Alpha(q.things, scale, confidence)
			agree.Rows = append(agree.Rows, append([]any{n, len(q.rating), a.N}, quantity(a)...))
		}
		for _, name := range slices.Sorted(maps.Keys(q.rating)) {
			j := q.rating[name]
			if len(j.values) > 0 {
				c := raters.Spearman(j.lengths, j.values, confidence)
				length.Rows = append(length.Rows, append(append([]any{n, name, len(j.values)}, quantity(c)...), sign(c, 0)))
			}
			if q.choices > 0 && j.listed > 0 {
				expected := 1 / float64(q.choices)
				position.Rows = append(position.Rows, []any{n, name, j.listed, &j.first, expected, sign(j.first.Estimate(confidence), expected)})
			}
		}
	}
	return exhibits(agree, length, position)
}

func exhibits(agree, length, position world.Grid) (all []world.Exhibit) {
	for _, e := range []world.Exhibit{
		{Name: "agreement-of-judges", Title: "Agreement of judges", Show: agree,
			Caption: "Krippendorff's alpha with a 95% interval: 1 if judges always agree, 0 if they agree as often as chance would make them. Below 0.67 it is usual not to draw conclusions."},
		{Name: "length-bias", Title: "Do judges prefer long texts?", Show: length,
			Caption: "Spearman's correlation between the answer and the length of what was judged. It can have a good reason: what is better may be longer."},
		{Name: "position-bias", Title: "Do judges prefer the first choice?", Show: position,
			Caption: "How often a judge chose what was first in its list. Each call has its own order, so a judge without a bias has the expected share."},
	} {
		if len(e.Show.(world.Grid).Rows) > 0 { //nolint:forcetypeassert // all are grids
			all = append(all, e)
		}
	}
	return all
}

// quantity returns a value and its interval as cells.
func quantity(q stats.Quantity) []any {
	if !q.Known() {
		return []any{"unknown", "", ""}
	}
	return []any{q.Value, q.Low, q.High}
}

// sign says whether the interval of a quantity leaves out what is expected without a bias.
func sign(q stats.Quantity, expected float64) string {
	switch {
	case !q.Known():
		return ""
	case q.Low > expected || q.High < expected:
		return "yes"
	default:
		return "no"
	}
}
