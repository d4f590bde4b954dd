// Package agreement makes scores of what people said about episodes, and compares other scores with their verdicts:
// whether a judge that is a model can be trusted.
package agreement

import (
	"fmt"
	"strings"

	"parley/internal/digits"
	"parley/internal/label"
	"parley/internal/report/page"
	"parley/internal/statmath"
	"parley/internal/view"
	"parley/world"
)

// rated is a score and how often it agrees with people: A is the score, B the verdicts.
type rated struct {
	name, seat string
	statmath.Pairs
	agree world.Sample
	other bool // a value was neither 0 nor 1
}

// Attach adds labels to a run, as scores from 0 to 1. Call it after Know.
func Attach(r *view.Run, labels *label.Set) {
	r.Labels, r.TagsLeft = labels.Scores(r.Episodes.Total)
	for _, list := range r.Labels {
		for _, s := range list {
			r.Bounds[s.Name] = world.Share()
		}
	}
}

// LeftOut says how many tags of a run are no scores. It is empty if all are.
func LeftOut(r *view.Run) string {
	if r.TagsLeft == 0 {
		return ""
	}
	return fmt.Sprintf("The %d tags that most labels have are scores. %s others are left out.", label.MaxTags, digits.Grouped(r.TagsLeft))
}

// Block returns a table of every score that is 0 or 1 against the verdicts of people on the same episodes. ok is false
// if there are none.
func Block(r *view.Run) (b page.Block, ok bool) {
	all := collect(r)
	t := &page.Table{Name: "agreement", Title: "Agreement with people", Track: -1, Columns: []page.Column{
		page.Key("score"), page.Key("seat"), page.Number("episodes"), page.Number("both 1"), page.Number("only the score"), page.Number("only people"), page.Number("both 0"),
		page.Number("agree"), page.Number("kappa"),
	}}
	for _, s := range all {
		if s.other {
			continue
		}
		t.Rows = append(t.Rows, []page.Cell{
			page.Word(s.name), page.Word(s.seat), page.Whole(s.N()), page.Whole(s.Both), page.Whole(s.OnlyA), page.Whole(s.OnlyB), page.Whole(s.Neither),
			page.Quantity(page.Sample(&s.agree, true)), page.Quantity(statmath.Kappa(s.Pairs, view.Confidence)),
		})
	}
	return page.Block{Title: t.Title, Table: t, Caption: "Scores that are 0 or 1, and the verdicts of people on the same episodes. A choice, such as tone: cold, is compared with the tag of its name instead, if people gave it. Kappa is 1 if they always agree, and 0 if they agree as often as chance would make them."}, len(t.Rows) > 0
}

// collect counts how scores and verdicts go together, in the order in which scores are named. An episode about which
// people disagree does not count. For a choice of a scorer, such as trust.tone: cold, a tag of its name counts in place of the verdict.
func collect(r *view.Run) (all []*rated) {
	if len(r.Labels) == 0 {
		return nil
	}
	at := map[[2]string]*rated{}
	r.Each(func(p world.Played) {
		if p.Outcome.Failed != "" {
			return
		}
		said := map[string]float64{}
		for _, s := range r.Labels[p.Episode] {
			said[s.Name] = s.Value
		}
		for _, s := range p.Outcome.Scores {
			verdict, ok := said[label.VerdictScore]
			if _, choice, isChoice := strings.Cut(s.Name, ": "); isChoice {
				if tag, given := said[label.Prefix+choice]; given {
					verdict, ok = tag, true
				}
			}
			if strings.HasPrefix(s.Name, label.Prefix) || !ok || verdict != 0 && verdict != 1 {
				continue
			}
			key := [2]string{s.Name, s.Seat}
			if at[key] == nil {
				at[key] = &rated{name: s.Name, seat: s.Seat}
				all = append(all, at[key])
			}
			at[key].add(p.Unit, s.Value, verdict)
		}
	})
	return all
}

func (r *rated) add(unit world.Unit, score, verdict float64) {
	if score != 0 && score != 1 {
		r.other = true
		return
	}
	same := 0.0
	if score == verdict {
		same = 1
	}
	r.agree.Add(unit, same)
	switch {
	case score == 1 && verdict == 1:
		r.Both++
	case score == 1:
		r.OnlyA++
	case verdict == 1:
		r.OnlyB++
	default:
		r.Neither++
	}
}
