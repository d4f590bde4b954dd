package compare

import (
	"maps"
	"math"
	"slices"

	"parley/internal/view"
	"parley/world"
)

// observation is a score of one seat of an episode, or of the whole episode.
type observation struct {
	deal    view.Deal
	play    int // see world.Unit; of all runs
	stratum stratum
	episode int // of all runs, counted through
	value   float64

	self ref
	from []ref // what it goes on from, the nearest first
	past ref   // of these and self, the nearest that the other side has too
}

// stratum is what has to be the same beside the deal for two observations to be a pair.
type stratum struct {
	setting    int // of the params
	cell, seat string
}

// series is one score, by group.
type series struct {
	score, of string
	share     bool // it is only ever 0 or 1
	by        map[string][]observation
}

type collection struct {
	groups []string
	series []*series
	scores []string // that there are, whether asked for or not
}

// collect groups the scores of all runs.
func collect(runs []*view.Run, names []string, c Config) *collection {
	if c.By == ByFile {
		names = together(runs, names)
	}
	out, from := &collection{}, pasts(runs)
	at := map[[2]string]*series{}
	subject := subjects(runs, c.By)
	settings, plays := map[string]int{}, plays{}
	episodes := 0
	for i, r := range runs {
		deals := r.Deals()
		r.Each(func(p world.Played) {
			episodes++
			if p.Outcome.Failed != "" {
				return
			}
			setting, ok := settings[string(p.Spec.Params)]
			if !ok {
				setting = len(settings)
				settings[string(p.Spec.Params)] = setting
			}
			deal, play := deals.Of(p.Spec), plays.of(r, p)
			for _, s := range p.Outcome.Scores {
				if !slices.Contains(out.scores, s.Name) {
					out.scores = append(out.scores, s.Name)
				}
				if math.IsNaN(s.Value) || math.IsInf(s.Value, 0) || (len(c.Scores) > 0 && !slices.Contains(c.Scores, s.Name)) {
					continue
				}
				group, where := placeOf(r, names[i], p.Spec, setting, s.Seat, c.By)
				if group == "" {
					continue
				}
				key := [2]string{s.Name, subject(p.Spec, s.Seat)}
				if at[key] == nil {
					at[key] = &series{score: key[0], of: key[1], share: true, by: map[string][]observation{}}
					out.series = append(out.series, at[key])
				}
				at[key].share = at[key].share && (s.Value == 0 || s.Value == 1)
				at[key].by[group] = append(at[key].by[group], observation{
					deal: deal, play: play, stratum: where, episode: episodes, value: s.Value,
					self: ref{r.Head.Begun.Run, p.Episode}, from: from[i],
				})
				if !slices.Contains(out.groups, group) {
					out.groups = append(out.groups, group)
				}
			}
		})
	}
	out.sort()
	return out
}

// sort puts the series of one score together, scores in the order that worlds name them.
func (c *collection) sort() {
	first := map[string]int{}
	for i, s := range c.series {
		if _, ok := first[s.score]; !ok {
			first[s.score] = i
		}
	}
	slices.SortStableFunc(c.series, func(a, b *series) int { return first[a.score] - first[b.score] })
}

// placeOf says what group a score is in, and where. A whole episode's is no agent's.
func placeOf(r *view.Run, name string, spec world.Spec, setting int, seat, by string) (group string, at stratum) {
	switch by {
	case ByFile:
		return name, stratum{cell: spec.Cell, seat: seat}
	case ByCell:
		return spec.Cell, stratum{seat: seat}
	}
	agent := spec.Lineup[seat]
	if seat == "" || agent == "" {
		return "", stratum{}
	}
	if by == ByModel {
		agent = r.Model(agent)
	}
	return agent, stratum{setting: setting, seat: seat}
}

// subjects says whose score a score is, where groups do not: an agent's if all files have
// an agent in common, else a seat's. A fork may put another agent into a seat, so of branches
// it is the seat's.
func subjects(runs []*view.Run, by string) func(world.Spec, string) string {
	switch by {
	case ByAgent, ByModel:
		return func(world.Spec, string) string { return "" }
	case ByFile:
		common := agentsOf(runs[0])
		for _, r := range runs[1:] {
			names := agentsOf(r)
			maps.DeleteFunc(common, func(name string, _ bool) bool { return !names[name] })
		}
		if len(common) > 0 && !forked(runs) {
			return func(spec world.Spec, seat string) string { return spec.Lineup[seat] }
		}
	}
	return func(_ world.Spec, seat string) string { return seat }
}

func agentsOf(r *view.Run) map[string]bool {
	names := map[string]bool{}
	for _, a := range r.Head.Begun.Agents {
		names[a.Name] = true
	}
	return names
}
