package report

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"parley/internal/run/planner"
	"parley/internal/run/results"
	"parley/world"
)

// observation is a score of one seat of an episode, or of the whole episode.
type observation struct {
	deal    results.Deal
	play    int // see world.Unit; numbered across runs
	stratum stratum
	episode int // numbered across runs
	value   float64

	self ref
	from []ref // the episodes that it continues, the nearest first
	past ref   // of these and self, the nearest that the other side has too
}

// stratum is what must be the same besides the deal for two observations to be a pair.
type stratum struct {
	setting    int // of the params
	cell, seat string
}

// series is one score, by group.
type series struct {
	score, of string
	share     bool // all values are 0 or 1
	by        map[string][]observation
}

type collection struct {
	groups []string
	series []*series
	scores []string // all scores, whether asked for or not
}

// collect groups the scores of all runs.
func collect(runs []*results.Run, names []string, c Config) (*collection, error) {
	if c.By == ByFile {
		names = together(runs, names)
	}
	factors, err := results.FactorsOf(runs, names, strings.Split(c.By, ","))
	if err != nil {
		return nil, err
	}
	out, from := &collection{}, pasts(runs)
	at := map[[2]string]*series{}
	subject, where := subjects(runs, factors), stratumOf(factors)
	plays := plays{}
	episodes := 0
	for i, r := range runs {
		deals := r.Deals()
		r.Each(func(p world.Played) {
			episodes++
			if p.Outcome.Failed != "" {
				return
			}
			deal, play := deals.Of(p.Spec), plays.of(r, p)
			for _, s := range p.Outcome.Scores {
				if !slices.Contains(out.scores, s.Name) {
					out.scores = append(out.scores, s.Name)
				}
				if math.IsNaN(s.Value) || math.IsInf(s.Value, 0) || (len(c.Scores) > 0 && !slices.Contains(c.Scores, s.Name)) {
					continue
				}
				levels, ok := factors.Of(i, p.Spec, s.Seat)
				if !ok {
					continue
				}
				group := strings.Join(levels[:len(factors.Names)], ", ")
				key := [2]string{s.Name, subject(p.Spec, s.Seat)}
				if at[key] == nil {
					at[key] = &series{score: key[0], of: key[1], share: true, by: map[string][]observation{}}
					out.series = append(out.series, at[key])
				}
				at[key].share = at[key].share && (s.Value == 0 || s.Value == 1)
				at[key].by[group] = append(at[key].by[group], observation{
					deal: deal, play: play, stratum: where(p.Spec, s.Seat), episode: episodes, value: s.Value,
					self: ref{r.Head.Begun.Run, p.Episode}, from: from[i],
				})
				if !slices.Contains(out.groups, group) {
					out.groups = append(out.groups, group)
				}
			}
		})
	}
	out.sort()
	return out, nil
}

// sort puts the series of one score together, in the order that worlds name scores.
func (c *collection) sort() {
	first := map[string]int{}
	for i, s := range c.series {
		if _, ok := first[s.score]; !ok {
			first[s.score] = i
		}
	}
	slices.SortStableFunc(c.series, func(a, b *series) int { return first[a.score] - first[b.score] })
}

// stratumOf returns a function that finds the stratum of a score: whatever is
// neither a factor nor follows from one.
func stratumOf(factors *results.Factors) func(world.Spec, string) stratum {
	settings := settings{of: factors, known: map[string]int{}, numbers: map[string]int{}}
	whose := factors.Any(results.OfAgent, results.OfLineup, results.OfFile) // these determine the lineup
	seats, cells, variations := factors.Any(results.OfSeat), factors.Any(results.OfCell), factors.Any(results.OfVariation)
	params, files := factors.Any(results.OfParam), factors.Any(results.OfFile) && len(factors.Names) == 1
	return func(spec world.Spec, seat string) (at stratum) {
		if at.seat = seat; seats {
			at.seat = ""
		}
		switch {
		case cells:
		case variations:
			if !whose && !params {
				at.cell = strings.TrimPrefix(spec.Cell, planner.VariationOf(spec.Cell))
			}
		case files:
			at.cell = spec.Cell
		default:
			at.setting = settings.number(spec.Params)
			if !whose {
				at.cell = fmt.Sprint(spec.Lineup)
			}
		}
		return at
	}
}

// settings numbers params, ignoring those that are factors.
type settings struct {
	of      *results.Factors
	known   map[string]int // by params
	numbers map[string]int // by params without factors
}

func (s settings) number(params json.RawMessage) int {
	n, ok := s.known[string(params)]
	if ok {
		return n
	}
	left := s.of.WithoutParams(params)
	n, ok = s.numbers[left]
	if !ok {
		n = len(s.numbers)
		s.numbers[left] = n
	}
	s.known[string(params)] = n
	return n
}

// subjects returns a function that finds whose score a score is, if groups do not determine it: an agent's if all
// files have an agent in common, otherwise a seat's. A fork may put another agent into a seat, so for branches
// it is the seat's.
func subjects(runs []*results.Run, factors *results.Factors) func(world.Spec, string) string {
	switch {
	case factors.Any(results.OfAgent, results.OfSeat):
		return func(world.Spec, string) string { return "" }
	case factors.Any(results.OfFile):
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

func agentsOf(r *results.Run) map[string]bool {
	names := map[string]bool{}
	for _, a := range r.Head.Begun.Agents {
		names[a.Name] = true
	}
	return names
}
