package view

import (
	"encoding/json"
	"math"
	"slices"

	"parley/internal/stats"
	"parley/journal"
	"parley/world"
)

// Confidence is that of every interval that is shown.
const Confidence = 0.95

// Group is what a score is counted in.
type Group struct {
	Score string `json:"score"`
	Cell  string `json:"cell,omitempty"`
	Agent string `json:"agent,omitempty"`
	Model string `json:"model,omitempty"`
	Seat  string `json:"seat,omitempty"`
}

// Score is what a group came to.
type Score struct {
	Group
	Share  bool // the score is only ever 0 or 1 in this run
	Sample *world.Sample
}

// Estimate is the score with its interval.
func (s Score) Estimate() stats.Quantity {
	if s.Share {
		return s.Sample.Share(Confidence)
	}
	return s.Sample.Mean(Confidence)
}

// Scores folds the scores of all episodes that did not fail, in episode order, after by
// has taken out of a score's group what is not asked for. An episode counts once in a group:
// of several values it has there, by their mean. Scores come in the order in which worlds name them, then
// cells, agents and seats as they first occur.
func (r *Run) Scores(by func(Group) Group) []Score {
	f := scoreFold{within: r.Bounds, at: map[Group]*Score{}, place: map[string]int{}, other: map[string]bool{}}
	models := map[string]string{}
	for _, a := range r.Head.Begun.Agents {
		models[a.Name] = r.Model(a.Name)
	}
	var own []ownScore // of one episode
	r.Each(func(p world.Played) {
		if p.Outcome.Failed != "" {
			return
		}
		own = own[:0]
		for _, s := range p.Outcome.Scores {
			if math.IsNaN(s.Value) || math.IsInf(s.Value, 0) {
				continue // nothing can be said about it
			}
			agent := p.Spec.Lineup[s.Seat]
			g := by(Group{Score: s.Name, Cell: p.Spec.Cell, Agent: agent, Model: models[agent], Seat: s.Seat})
			i := slices.IndexFunc(own, func(o ownScore) bool { return o.group == g })
			if i < 0 {
				i = len(own)
				own = append(own, ownScore{group: g})
			}
			own[i].values = append(own[i].values, s.Value)
			f.name(s)
		}
		for _, o := range own {
			f.add(o.group, o.values)
		}
	})
	return f.scores()
}

// Grouped says whether a run plays the same several times with the same deal, as rollouts do
// in a group: such episodes stand beside each other, and are not independent.
func Grouped(stages []journal.Staged) bool {
	for _, st := range stages {
		if st.Specs.Grouped() {
			return true
		}
	}
	return false
}

// Bounds are what the scores of a run can be, by name, as far as its kind declares it.
func Bounds(kind world.Kind, stages []journal.Staged) map[string]world.Bounds {
	if kind.Scores == nil {
		return nil
	}
	seen := map[string]bool{}
	out := map[string]world.Bounds{}
	for _, st := range stages {
		for _, spec := range st.Specs.Distinct() {
			if seen[string(spec.Params)] {
				continue
			}
			seen[string(spec.Params)] = true
			params := kind.Params()
			if json.Unmarshal(spec.Params, params) != nil {
				continue // a run file may come from anywhere
			}
			for _, m := range kind.Scores(params) {
				if was, ok := out[m.Name]; ok {
					m.Bounds = was.Join(m.Bounds)
				}
				out[m.Name] = m.Bounds
			}
		}
	}
	return out
}

// ownScore is what one episode has of a group.
type ownScore struct {
	group  Group
	values []float64
}

type scoreFold struct {
	within map[string]world.Bounds
	at     map[Group]*Score
	order  []*Score
	place  map[string]int  // of a score's name
	other  map[string]bool // is something else than 0 or 1 somewhere
}

func (f *scoreFold) name(s world.Score) {
	if _, ok := f.place[s.Name]; !ok {
		f.place[s.Name] = len(f.place)
	}
	if s.Value != 0 && s.Value != 1 {
		f.other[s.Name] = true
	}
}

func (f *scoreFold) add(g Group, values []float64) {
	if f.at[g] == nil {
		f.at[g] = &Score{Group: g, Sample: &world.Sample{Bounds: f.within[g.Score]}}
		f.order = append(f.order, f.at[g])
	}
	if len(values) > 1 {
		f.other[g.Score] = true // a mean of shares is no share
		sum := 0.0
		for _, v := range values {
			sum += v
		}
		values = []float64{sum / float64(len(values))}
	}
	f.at[g].Sample.Add(values...)
}

func (f *scoreFold) scores() []Score {
	slices.SortStableFunc(f.order, func(a, b *Score) int { return f.place[a.Score] - f.place[b.Score] })
	out := make([]Score, len(f.order))
	for i, s := range f.order {
		s.Share = !f.other[s.Score]
		out[i] = *s
	}
	return out
}
