// Package show makes what there is to look at of games of Diplomacy: the kind's part of a
// report, over any number of games, and one game to step through.
//
// It promises that outcomes and notes from anywhere, broken ones too, are shown as far as
// they can be understood, and that the same games make the same pictures.
//
// It is not for drawing the board (package board) nor for laying out pages.
package show

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"

	"parley/world"
	"parley/worlds/diplomacy/record"
	"parley/worlds/diplomacy/rules/board"
)

// gallery is the kind's own part of a report.
type gallery struct {
	agents []string // in the order they came in
	years  []int

	scores    samples               // by agent and power
	curves    map[string]*yearCurve // centres over years, by power
	relations samples               // by power and power
	success   samples               // by agent and kind of order
	mix       samples               // by agent and kind of order: its share
	ends      map[string]int
	conduct   samples // by agent and score
	invalid   map[string]map[string]int
	moments   []sighting
}

// seats lists the powers as they are seated.
func seats() []string {
	var names []string
	for _, w := range board.Powers() {
		names = append(names, w.String())
	}
	return names
}

type key = [2]string

// samples are numbers of episodes by two names.
type samples map[key]*world.Sample

func (s samples) at(a, b string, within world.Bounds) *world.Sample {
	k := key{a, b}
	if s[k] == nil {
		s[k] = &world.Sample{Bounds: within}
	}
	return s[k]
}

// centres are the bounds of numbers of supply centres.
func centres() world.Bounds { return world.Bounds{High: board.Centres} }

// yearCurve is a number by year.
type yearCurve map[int]*world.Sample

// Scores are the names of what a game scores of each power.
func Scores() []string {
	return []string{"score", "centres", "survived", "solo", "success", "invalid", "messages", "betrayals", "kept"}
}

// Bounds are what a score of a power can be.
func Bounds(score string) world.Bounds {
	switch score {
	case "score", "messages", "betrayals":
		return world.AtLeast0()
	case "centres":
		return centres()
	default:
		return world.Share()
	}
}

// sighting is a moment and the episode it was in.
type sighting struct {
	episode int
	record.Moment
}

// Exhibitor begins the kind's part of a report.
func Exhibitor() world.Exhibitor {
	return &gallery{
		scores: samples{}, curves: map[string]*yearCurve{}, relations: samples{}, success: samples{}, mix: samples{},
		ends: map[string]int{}, conduct: samples{}, invalid: map[string]map[string]int{},
	}
}

// Add takes in a game.
func (g *gallery) Add(p world.Played) {
	raw, _ := p.Outcome.Data.(json.RawMessage)
	var s record.Summary
	if p.Outcome.Failed != "" || json.Unmarshal(raw, &s) != nil || len(s.Powers) == 0 {
		return
	}
	g.ends[s.Ended]++
	byAgent := map[string][]*record.Power{}
	for _, power := range seats() {
		st := s.Powers[power]
		if st == nil {
			continue
		}
		agent := p.Spec.Lineup[power]
		if agent == "" {
			agent = power
		}
		if !slices.Contains(g.agents, agent) {
			g.agents = append(g.agents, agent)
		}
		byAgent[agent] = append(byAgent[agent], st)
	}
	for agent, list := range byAgent {
		g.addAgent(p.Unit, agent, list)
	}
	g.addScores(p)
	g.addCurves(p.Unit, s.Centres)
	for a, row := range s.Relations {
		for b, v := range row {
			g.relations.at(a, b, world.Bounds{}).Add(p.Unit, v)
		}
	}
	for _, m := range s.Moments {
		g.moments = append(g.moments, sighting{p.Episode, m})
	}
	g.trim()
}

// addScores takes in what the game scored, as every other table does: a power that never gave a legal order
// has no scores.
func (g *gallery) addScores(p world.Played) {
	values := map[key][]float64{}
	for _, s := range p.Outcome.Scores {
		agent := p.Spec.Lineup[s.Seat]
		if agent == "" {
			agent = s.Seat
		}
		if s.Seat == "" || !slices.Contains(Scores(), s.Name) || math.IsNaN(s.Value) || math.IsInf(s.Value, 0) {
			continue
		}
		values[key{agent, s.Name}] = append(values[key{agent, s.Name}], s.Value)
		if s.Name == "score" {
			g.scores.at(agent, s.Seat, Bounds(s.Name)).Add(p.Unit, s.Value)
		}
	}
	for k, list := range values {
		g.conduct.at(k[0], k[1], Bounds(k[1])).Add(p.Unit, list...)
	}
}

// mostMoments is how many moments a report shows.
const mostMoments = 20

// trim keeps the moments that matter most, the earliest of equal ones.
func (g *gallery) trim() {
	slices.SortStableFunc(g.moments, func(a, b sighting) int { return b.Weight - a.Weight })
	g.moments = g.moments[:min(len(g.moments), mostMoments)]
}

func (g *gallery) addCurves(u world.Unit, counts []record.Count) {
	for _, c := range counts {
		if !slices.Contains(g.years, c.Year) {
			g.years = append(g.years, c.Year)
		}
		for _, power := range seats() {
			curve := g.curves[power]
			if curve == nil {
				curve = &yearCurve{}
				g.curves[power] = curve
			}
			if (*curve)[c.Year] == nil {
				(*curve)[c.Year] = &world.Sample{Bounds: centres()}
			}
			(*curve)[c.Year].Add(u, float64(c.Centres[power]))
		}
	}
}

// addAgent takes in what an agent did in one game, in all the seats it had.
func (g *gallery) addAgent(u world.Unit, agent string, list []*record.Power) {
	if g.invalid[agent] == nil {
		g.invalid[agent] = map[string]int{}
	}
	each := func(s *world.Sample, f func(*record.Power) (float64, bool)) {
		var values []float64
		for _, st := range list {
			if v, ok := f(st); ok {
				values = append(values, v)
			}
		}
		s.Add(u, values...)
	}
	for _, kind := range orderKinds() {
		each(g.success.at(agent, kind, world.Share()), func(p *record.Power) (float64, bool) { return share(p.Tried(kind)) })
		each(g.mix.at(agent, kind, world.Share()), func(p *record.Power) (float64, bool) {
			n, _ := p.Tried(kind)
			return share(countMoves(p), n)
		})
	}
	for _, st := range list {
		for reason, n := range st.Refused {
			g.invalid[agent][reason] += n
		}
		if st.Missing > 0 {
			g.invalid[agent]["order: missing"] += st.Missing
		}
	}
}

// orderKinds are the kinds of orders of movement phases.
func orderKinds() []string { return []string{"move", "support", "convoy", "hold"} }

func countMoves(p *record.Power) int {
	all := 0
	for _, kind := range orderKinds() {
		n, _ := p.Tried(kind)
		all += n
	}
	return all
}

// share is the share of some among n, unless there are none.
func share(n, some int) (float64, bool) {
	if n == 0 {
		return 0, false
	}
	return float64(some) / float64(n), true
}

// Exhibits shows it all.
func (g *gallery) Exhibits() []world.Exhibit {
	if len(g.agents) == 0 {
		return nil
	}
	slices.Sort(g.years)
	out := []world.Exhibit{
		{Name: "diplomacy-conduct", Title: "How agents did", Show: g.showConduct(), Caption: "Means over games; an agent in several seats of a game counts once for it. Success: of moves, supports and convoys. Invalid: of orders written. Betrayals: strikes against a power that called the striker friendly or ally. Kept: of promises that could be checked."},
		{Name: "diplomacy-powers", Title: "Score by power and agent", Show: g.showPowers(), Caption: "The mean score of each agent with each power."},
		{Name: "diplomacy-centres", Title: "Centres over the years", Show: g.showCurves(), Caption: "The mean number of supply centres of each power after each year; the first point is the start."},
		{Name: "diplomacy-orders", Title: "Order success", Show: g.showOrders(g.success, "success"), Caption: "The share of orders of each kind that succeeded. A support succeeds when it is matched and not cut."},
		{Name: "diplomacy-mix", Title: "Order mix", Show: g.showOrders(g.mix, "share"), Caption: "The share of each kind among the orders of movement phases."},
		{Name: "diplomacy-ends", Title: "How games ended", Show: g.showEnds()},
	}
	if len(g.relations) > 0 {
		out = append(out, world.Exhibit{Name: "diplomacy-relations", Title: "How powers saw each other", Show: g.showRelations(), Caption: "The mean over movement phases, from -2 (enemy) to 2 (ally): how the power of the row saw that of the column."})
	}
	if grid := g.showInvalid(); len(grid.Rows) > 0 {
		out = append(out, world.Exhibit{Name: "diplomacy-refused", Title: "What was not taken", Show: grid, Caption: "What agents wrote and could not be used, by reason, over all games."})
	}
	if len(g.moments) > 0 {
		out = append(out, world.Exhibit{Name: "diplomacy-moments", Title: "Key moments", Show: g.showMoments()})
	}
	return out
}

func (g *gallery) showConduct() world.Grid {
	grid := world.Grid{Columns: append([]string{"agent"}, Scores()...)}
	for _, a := range g.agents {
		row := []any{a}
		for _, name := range Scores() {
			s := g.conduct[key{a, name}]
			if s.Episodes() == 0 {
				row = append(row, "–")
				continue
			}
			row = append(row, s)
		}
		grid.Rows = append(grid.Rows, row)
	}
	return grid
}

func (g *gallery) showPowers() world.HeatMap {
	return heat("agent", "power", "score", g.agents, seats(), g.scores)
}

func (g *gallery) showRelations() world.HeatMap {
	return heat("power", "seen", "relation", seats(), seats(), g.relations)
}

func heat(row, column, what string, rows, columns []string, from samples) world.HeatMap {
	m := world.HeatMap{Row: row, Column: column, What: what, Rows: rows, Columns: columns}
	for _, a := range rows {
		cells := make([]*world.Sample, len(columns))
		for i, b := range columns {
			cells[i] = from[key{a, b}]
		}
		m.Cells = append(m.Cells, cells)
	}
	return m
}

func (g *gallery) showCurves() world.Curves {
	c := world.Curves{X: "year", Y: "centres"}
	for _, power := range seats() {
		curve := world.Curve{Name: power}
		for _, year := range g.years {
			if s := (*g.curves[power])[year]; s != nil {
				curve.Points = append(curve.Points, world.CurvePoint{X: float64(year), Sample: s})
			}
		}
		c.Curves = append(c.Curves, curve)
	}
	return c
}

func (g *gallery) showOrders(from samples, what string) world.Estimates {
	e := world.Estimates{By: []string{"order", "agent"}, What: what}
	for _, kind := range orderKinds() {
		for _, a := range g.agents {
			if s := from[key{a, kind}]; s != nil && s.Episodes() > 0 {
				e.Rows = append(e.Rows, world.Estimated{Labels: []string{kind, a}, Sample: s})
			}
		}
	}
	return e
}

func (g *gallery) showEnds() world.Bars {
	b := world.Bars{X: "end", Y: "games", Labels: slices.Sorted(maps.Keys(g.ends))}
	s := world.BarSeries{Name: "games"}
	for _, l := range b.Labels {
		s.Values = append(s.Values, float64(g.ends[l]))
	}
	b.Series = []world.BarSeries{s}
	return b
}

func (g *gallery) showInvalid() world.Grid {
	grid := world.Grid{Columns: append([]string{"reason"}, g.agents...)}
	reasons := map[string]bool{}
	for _, counts := range g.invalid {
		for reason := range counts {
			reasons[reason] = true
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(reasons)) {
		row := []any{reason}
		for _, a := range g.agents {
			row = append(row, g.invalid[a][reason])
		}
		grid.Rows = append(grid.Rows, row)
	}
	return grid
}

func (g *gallery) showMoments() world.Grid {
	grid := world.Grid{Columns: []string{"game", "phase", "kind", "what happened"}}
	for _, m := range g.moments {
		grid.Rows = append(grid.Rows, []any{fmt.Sprint(m.episode), m.Phase, m.Kind, m.Text})
	}
	return grid
}
