package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"parley/internal/kit/statmath"
	"parley/internal/kit/text"
	"parley/internal/read/score"
	"parley/internal/run/label"
	"parley/internal/run/results"
	"parley/stats"
	"parley/world"
)

// rated is a score, or that of one judge, and how it goes with what people said: A is the score, B the verdicts.
type rated struct {
	name, judge, seat string
	statmath.Pairs
	agree            world.Sample
	values, verdicts []float64
	units            []world.Unit
	other            bool // a value was neither 0 nor 1
}

// kappa returns Cohen's kappa. Like the share beside it, it depends on the number of independent units.
func (r *rated) kappa() stats.Quantity {
	return world.Clustered(r.units, func(clusters []int) stats.Quantity {
		pairs := make([]statmath.Pairs, len(clusters))
		for i, c := range clusters {
			pairs[c].Count(r.values[i], r.verdicts[i])
		}
		return statmath.Kappa(pairs, results.Confidence)
	})
}

// correlation returns Spearman's.
func (r *rated) correlation() stats.Quantity {
	return world.Clustered(r.units, func(clusters []int) stats.Quantity {
		return statmath.Spearman(r.values, r.verdicts, clusters, results.Confidence)
	})
}

// AttachLabels adds labels to a run, as scores from 0 to 1. Call it after Know.
func AttachLabels(r *results.Run, labels *label.Set) {
	r.Labels, r.TagsLeft = labels.Scores(r.Episodes.Total)
	for _, list := range r.Labels {
		for _, s := range list {
			r.Bounds[s.Name] = world.Share()
		}
	}
}

// TagsLeftOut says how many tags of a run are no scores. It is empty if all are.
func TagsLeftOut(r *results.Run) string {
	if r.TagsLeft == 0 {
		return ""
	}
	return fmt.Sprintf("The %d tags that most labels have are scores. %s others are left out.", label.MaxTags, text.GroupDigits(r.TagsLeft))
}

// agreementBlocks returns what people and scores say about the same episodes, which shows whether a judge that is a model can be trusted: a table of scores that are 0 or 1, and one of other scores
// by scorers, as far as there are any. Where several judges gave a score, each has its own row.
func agreementBlocks(r *results.Run, judged score.Judged) (all []Block) {
	same := &Table{Name: "agreement", Title: "Agreement with people", Track: -1, Columns: []Column{
		KeyColumn("score"), KeyColumn("judge"), KeyColumn("seat"), NumberColumn("episodes"), NumberColumn("both 1"), NumberColumn("only the score"), NumberColumn("only people"), NumberColumn("both 0"),
		NumberColumn("agree"), NumberColumn("kappa"),
	}}
	related := &Table{Name: "correlation-with-people", Title: "Correlation with people", Track: -1, Columns: []Column{
		KeyColumn("score"), KeyColumn("judge"), KeyColumn("seat"), NumberColumn("episodes"), NumberColumn("correlation"),
	}}
	scorers := scorerNames(r)
	for _, s := range agreements(r, judged) {
		about := []Cell{Word(s.name), Word(s.judge), Word(s.seat), whole(len(s.values))}
		switch {
		case !s.other && !(scorers[s.name] && onScale(r.Bounds[s.name])):
			same.Rows = append(same.Rows, append(about, whole(s.Both), whole(s.OnlyA), whole(s.OnlyB), whole(s.Neither),
				Quantity(sampleEstimate(&s.agree, true)), Quantity(s.kappa())))
		case scorers[s.name]:
			related.Rows = append(related.Rows, append(about, Quantity(s.correlation())))
		}
	}
	for _, b := range []Block{
		{Table: same, Caption: "Scores that are 0 or 1, and the verdicts of people on the same episodes. A choice, such as tone: cold, is compared with the tag of its name instead, if people gave it. Where several judges gave a score, each judge is compared too. Kappa is 1 if they always agree, and 0 if they agree as often as chance would make them."},
		{Table: related, Caption: "Scores by scorers that have other values, such as those on a scale and means of several judges, and the verdicts of people on the same episodes: Spearman's correlation. It is 1 if the score is higher in every episode that passes, up to ties, and 0 if verdicts do not go with the score."},
	} {
		if b.Title = b.Table.Title; len(b.Table.Rows) > 0 {
			all = append(all, b)
		}
	}
	return all
}

// onScale reports whether values are on a scale such as 1 to 5, of which only the end 1 may have been used.
func onScale(b world.Bounds) bool {
	return !b.Any() && b != world.Share() && !math.IsInf(b.High, 1)
}

// scorerNames returns the names of the scores by scorers.
func scorerNames(r *results.Run) map[string]bool {
	names := map[string]bool{}
	for _, list := range r.Added {
		for _, s := range list {
			names[s.Name] = true
		}
	}
	return names
}

// agreements counts how scores and verdicts go together, in the order in which scores are named. An episode about which
// people disagree does not count. For a choice of a scorer, such as trust.tone: cold, a tag of its name counts in place of the verdict.
func agreements(r *results.Run, judged score.Judged) (all []*rated) {
	if len(r.Labels) == 0 {
		return nil
	}
	at := map[[3]string]*rated{}
	judges := map[[2]string]int{} // how many judges gave a score
	r.Each(func(p world.Played) {
		if p.Outcome.Failed != "" {
			return
		}
		labels := map[string]float64{}
		for _, s := range r.Labels[p.Episode] {
			labels[s.Name] = s.Value
		}
		scores := make([]score.JudgeScore, 0, len(p.Outcome.Scores)+len(judged[p.Episode]))
		for _, s := range p.Outcome.Scores {
			scores = append(scores, score.JudgeScore{Score: s})
		}
		for _, s := range append(scores, judged[p.Episode]...) {
			verdict, ok := verdictOn(s.Name, labels)
			if !ok {
				continue
			}
			key := [3]string{s.Name, s.Judge, s.Seat}
			if at[key] == nil {
				at[key] = &rated{name: s.Name, judge: s.Judge, seat: s.Seat}
				all = append(all, at[key])
				if s.Judge != "" {
					judges[[2]string{s.Name, s.Seat}]++
				}
			}
			at[key].add(p.Unit, s.Value, verdict)
		}
	})
	all = slices.DeleteFunc(all, func(s *rated) bool { return s.judge != "" && judges[[2]string{s.name, s.seat}] < 2 }) // the score itself says it
	place := map[[2]string]int{}
	for i, s := range all {
		if s.judge == "" {
			place[[2]string{s.name, s.seat}] = i
		}
	}
	slices.SortStableFunc(all, func(a, b *rated) int { // judges below their mean
		return cmp.Compare(place[[2]string{a.name, a.seat}], place[[2]string{b.name, b.seat}])
	})
	return all
}

// verdictOn returns what people said about that which a score is about: 0 or 1.
func verdictOn(name string, labels map[string]float64) (verdict float64, ok bool) {
	verdict, ok = labels[label.VerdictScore]
	if _, choice, isChoice := strings.Cut(name, ": "); isChoice {
		if tag, given := labels[label.Prefix+choice]; given {
			verdict, ok = tag, true
		}
	}
	return verdict, ok && !strings.HasPrefix(name, label.Prefix) && (verdict == 0 || verdict == 1)
}

func (r *rated) add(unit world.Unit, value, verdict float64) {
	r.values, r.verdicts, r.units = append(r.values, value), append(r.verdicts, verdict), append(r.units, unit)
	if value != 0 && value != 1 {
		r.other = true
		return
	}
	same := 0.0
	if value == verdict {
		same = 1
	}
	r.agree.Add(unit, same)
	r.Count(value, verdict)
}
