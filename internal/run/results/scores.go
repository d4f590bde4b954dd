package results

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"parley/internal/kit/statmath"
	"parley/internal/run/planner"
	"parley/world"
)

// Confidence is the confidence level of every interval that is shown.
const Confidence = 0.95

// EachScore reads runs with this many episodes in several rounds, and holds so many values at a time.
const (
	largeRun    = 1 << 18
	largeValues = 1 << 21
)

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

// Estimate is the mean of one score in a group of episodes, with a 95% interval: what the end of a run and the library give.
type Estimate struct {
	Group
	// Tags are those of the agent and of the cell's variation.
	Tags map[string]string `json:"tags,omitempty"`
	// Episodes counts the episodes that have the score. N counts independent units: episodes with the
	// same deal, and copies of one play, are one unit.
	Episodes int               `json:"episodes"`
	N        int               `json:"n"`
	Mean     float64           `json:"mean"`
	SD       float64           `json:"sd"` // of the observations
	Interval statmath.Interval `json:"interval"`
	Method   string            `json:"method"`
}

// Quantity returns the mean with its interval.
func (e *Estimate) Quantity() statmath.Quantity {
	return statmath.Quantity{Value: e.Mean, Interval: e.Interval, N: e.N, Method: e.Method}
}

// Estimates returns the estimates of the groups of Scores.
func (r *Run) Estimates(by func(Group) Group) []Estimate {
	tags, out := r.Tags(), []Estimate{}
	r.EachScore(by, func(s Score) {
		q := s.Estimate()
		out = append(out, Estimate{Group: s.Group, Tags: tags(s.Agent, s.Cell), Episodes: s.Sample.Episodes(), N: q.N, Mean: q.Value, SD: s.Sample.SD(), Interval: q.Interval, Method: q.Method})
	})
	return out
}

// Scores collects the scores of all episodes that did not fail, in episode order, after by has
// removed parts of a score's group. Scores come in the order in which the kind declares them, and those that it does not declare in
// the order in which they first occur; then cells, agents and seats in that order. The first is the main result of the run.
func (r *Run) Scores(by func(Group) Group) []Score { return r.scores(r.grouped(by)) }

func (r *Run) grouped(by func(Group) Group) grouping {
	models := map[string]string{}
	for _, a := range r.Head.Begun.Agents {
		models[a.Name] = r.Model(a.Name)
	}
	return func(spec world.Spec, s world.Score) (Group, bool) {
		agent := spec.Lineup[s.Seat]
		return by(Group{Score: s.Name, Cell: spec.Cell, Agent: agent, Model: models[agent], Seat: s.Seat}), true
	}
}

// Course is how the estimate of a group became what it is.
type Course struct {
	Group
	Episodes  []int               // after how many with the score
	Estimates []statmath.Quantity // one for each
}

// Courses returns how the estimates of one score became what they are, in episode order and at about as many moments as points. An
// estimate of few episodes says little: there is none.
func (r *Run) Courses(score string, by func(Group) Group, points int) (out []Course) {
	const fewest = 5
	grouped, f := r.grouped(by), r.newFold()
	step := max(1, (r.Head.Ended.Len()+points-1)/points)
	at := map[Group]int{} // by group: its place in out
	note := func(c *Course, s *Score) {
		if n := s.Sample.Episodes(); n >= fewest && (len(c.Episodes) == 0 || c.Episodes[len(c.Episodes)-1] != n) {
			c.Episodes, c.Estimates = append(c.Episodes, n), append(c.Estimates, s.Estimate())
		}
	}
	r.eachValue(func(spec world.Spec, s world.Score) (Group, bool) {
		g, ok := grouped(spec, s)
		return g, ok && s.Name == score
	}, f.name, func(shared world.Unit, g Group, values []float64) {
		s := f.of(g)
		s.Sample.Add(shared, values...)
		if _, known := at[g]; !known {
			at[g], out = len(out), append(out, Course{Group: g})
		}
		if s.Sample.Episodes()%step == 0 {
			note(&out[at[g]], s)
		}
	})
	for i := range out {
		note(&out[i], f.of(out[i].Group))
	}
	return out
}

// EachScore calls f with what Scores returns, one after the other. Of a large run it holds few values at a time, and reads
// the episodes again for the others.
func (r *Run) EachScore(by func(Group) Group, f func(Score)) {
	if r.Head.Ended.Len() < largeRun {
		for _, s := range r.Scores(by) {
			f(s)
		}
		return
	}
	r.eachScore(largeValues, r.grouped(by), f)
}

func (r *Run) eachScore(atOnce int, group grouping, f func(Score)) {
	found, sizes := r.newFold(), map[Group]int{}
	r.eachValue(group, found.name, func(_ world.Unit, g Group, _ []float64) {
		found.of(g)
		sizes[g]++
	})
	for left := found.scores(); len(left) > 0; {
		now, n, values := map[Group]*world.Sample{}, 0, 0
		for n < len(left) && (n == 0 || values+sizes[left[n].Group] <= atOnce) {
			s := left[n]
			s.Sample.Grow(sizes[s.Group])
			now[s.Group] = s.Sample
			values += sizes[s.Group]
			n++
		}
		r.eachValue(group, func(world.Score) {}, func(u world.Unit, g Group, values []float64) {
			if s := now[g]; s != nil {
				s.Add(u, values...)
			}
		})
		for i, s := range left[:n] {
			f(s)
			left[i] = Score{}
		}
		left = left[n:]
	}
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

// grouping returns the group of a score, if it has one.
type grouping func(world.Spec, world.Score) (Group, bool)

func (r *Run) scores(group grouping) []Score {
	f := r.newFold()
	r.eachValue(group, f.name, func(u world.Unit, g Group, values []float64) { f.of(g).Sample.Add(u, values...) })
	return f.scores()
}

// eachValue calls add with the values that each episode has in each group, after name with each score.
func (r *Run) eachValue(group grouping, name func(world.Score), add func(shared world.Unit, g Group, values []float64)) {
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
			name(s)
		}
		for _, o := range own {
			add(shared, o.group, o.values)
		}
	})
}

// Measures returns the scores that the kind of the run declares, or, if the kind is not known, declared when the run was played.
func (r *Run) Measures() []world.Measure {
	if r.kind.Name == "" && r.Head.Begun != nil {
		return r.Head.Begun.Measures
	}
	var specs []world.Specs
	for _, st := range r.Head.Stages {
		specs = append(specs, st.Specs)
	}
	return planner.Measures(r.kind, specs...)
}

// MeasuresNote names scores that the kind declares and did not declare when the episodes were played. Without a new version of
// the kind, the run is taken for one of the new rules, and its old scores for theirs. Empty: there are none, or it is not known.
func (r *Run) MeasuresNote() string {
	b := r.Head.Begun
	if b == nil || len(b.Measures) == 0 || r.kind.Name != b.Kind || r.kind.Version != b.KindVersion || r.Head.Ended.Len() == 0 {
		return ""
	}
	var added []string
	for _, m := range r.Measures() {
		if !slices.ContainsFunc(b.Measures, func(was world.Measure) bool { return was.Name == m.Name }) {
			added = append(added, m.Name)
		}
	}
	if len(added) == 0 {
		return ""
	}
	return fmt.Sprintf("The kind %s has changed since this run was begun: its measures now include %s, which the recorded episodes lack. Their scores are those of the old rules. Raise the kind's version, and play the plan into a new run file.",
		b.Kind, strings.Join(added, ", "))
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

func (r *Run) newFold() *scoreFold {
	f := &scoreFold{within: r.Bounds, at: map[Group]*Score{}, place: map[string]int{}}
	for _, name := range r.order {
		f.name(world.Score{Name: name})
	}
	return f
}

func (f *scoreFold) name(s world.Score) {
	if _, ok := f.place[s.Name]; !ok {
		f.place[s.Name] = len(f.place)
	}
}

// of returns the sample of a group.
func (f *scoreFold) of(g Group) *Score {
	if f.at[g] == nil {
		f.at[g] = &Score{Group: g, Sample: &world.Sample{Bounds: f.within[g.Score]}}
		f.order = append(f.order, f.at[g])
	}
	return f.at[g]
}

func (f *scoreFold) scores() []Score {
	slices.SortStableFunc(f.order, func(a, b *Score) int { return f.place[a.Score] - f.place[b.Score] })
	out := make([]Score, len(f.order))
	for i, s := range f.order {
		out[i] = *s
	}
	return out
}
