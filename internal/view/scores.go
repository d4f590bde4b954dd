package view

import (
	"math"
	"slices"

	"parley/internal/statmath"
	"parley/journal"
	"parley/world"
)

// Confidence is the confidence level of every interval that is shown.
const Confidence = 0.95

// Group is what a score is grouped by.
type Group struct {
	Score string `json:"score"`
	Cell  string `json:"cell,omitempty"`
	Agent string `json:"agent,omitempty"`
	Model string `json:"model,omitempty"`
	Seat  string `json:"seat,omitempty"`
	// Levels are the levels of the factors of ScoresBy; equal levels have one pointer. Otherwise nil.
	Levels *Levels `json:"-"`
}

// Score is the sample of a group.
type Score struct {
	Group
	Sample *world.Sample
}

// Estimate returns the mean of the score with its interval.
func (s Score) Estimate() statmath.Quantity { return s.Sample.Estimate(Confidence) }

// Scores collects the scores of all episodes that did not fail, in episode order, after by has
// removed parts of a score's group. Scores come in the order in which worlds name them, then
// cells, agents and seats in the order in which they first occur.
func (r *Run) Scores(by func(Group) Group) []Score {
	models := map[string]string{}
	for _, a := range r.Head.Begun.Agents {
		models[a.Name] = r.Model(a.Name)
	}
	return r.scores(func(spec world.Spec, s world.Score) (Group, bool) {
		agent := spec.Lineup[s.Seat]
		return by(Group{Score: s.Name, Cell: spec.Cell, Agent: agent, Model: models[agent], Seat: s.Seat}), true
	})
}

// ScoresBy does the same by the factors of this run alone, and by seat if no factor is of agents or
// seats. It leaves out scores without a level.
func (r *Run) ScoresBy(f *Factors) []Score {
	apart := !f.Any(OfAgent, OfSeat)
	known := map[Levels]*Levels{}
	return r.scores(func(spec world.Spec, s world.Score) (Group, bool) {
		levels, ok := f.Of(0, spec, s.Seat)
		if known[levels] == nil {
			known[levels] = &levels
		}
		g := Group{Score: s.Name, Levels: known[levels]}
		if apart {
			g.Seat = s.Seat
		}
		return g, ok
	})
}

func (r *Run) scores(group func(world.Spec, world.Score) (Group, bool)) []Score {
	f := scoreFold{within: r.Bounds, at: map[Group]*Score{}, place: map[string]int{}}
	var own []ownScore // of one episode
	r.each(func(p world.Played, shared world.Unit) {
		if p.Outcome.Failed != "" {
			return
		}
		own = own[:0]
		for _, s := range p.Outcome.Scores {
			if math.IsNaN(s.Value) || math.IsInf(s.Value, 0) {
				continue // it has no mean
			}
			g, ok := group(p.Spec, s)
			if !ok {
				continue
			}
			i := slices.IndexFunc(own, func(o ownScore) bool { return o.group == g })
			if i < 0 {
				i = len(own)
				own = slices.Grow(own, 1)[:i+1]
				own[i].group, own[i].values = g, own[i].values[:0] // of an earlier episode
			}
			own[i].values = append(own[i].values, s.Value)
			f.name(s)
		}
		for _, o := range own {
			f.add(shared, o.group, o.values)
		}
	})
	return f.scores()
}

// Bounds returns the possible values of the scores of a run, by name, as far as its kind declares
// them.
func Bounds(kind world.Kind, stages []journal.Staged) map[string]world.Bounds {
	seen := map[string]bool{}
	out := map[string]world.Bounds{}
	for _, st := range stages {
		for _, spec := range st.Specs.Distinct() {
			if seen[string(spec.Params)] {
				continue
			}
			seen[string(spec.Params)] = true
			params, err := kind.Read(spec.Params)
			if err != nil {
				continue // a run file may hold anything
			}
			for _, m := range kind.Measures(params) {
				if was, ok := out[m.Name]; ok {
					m.Bounds = was.Join(m.Bounds)
				}
				out[m.Name] = m.Bounds
			}
		}
	}
	return out
}

// ownScore is the values that one episode has in a group.
type ownScore struct {
	group  Group
	values []float64
}

type scoreFold struct {
	within map[string]world.Bounds
	at     map[Group]*Score
	order  []*Score
	place  map[string]int // by a score's name
}

func (f *scoreFold) name(s world.Score) {
	if _, ok := f.place[s.Name]; !ok {
		f.place[s.Name] = len(f.place)
	}
}

func (f *scoreFold) add(u world.Unit, g Group, values []float64) {
	if f.at[g] == nil {
		f.at[g] = &Score{Group: g, Sample: &world.Sample{Bounds: f.within[g.Score]}}
		f.order = append(f.order, f.at[g])
	}
	f.at[g].Sample.Add(u, values...)
}

func (f *scoreFold) scores() []Score {
	slices.SortStableFunc(f.order, func(a, b *Score) int { return f.place[a.Score] - f.place[b.Score] })
	out := make([]Score, len(f.order))
	for i, s := range f.order {
		out[i] = *s
	}
	return out
}
