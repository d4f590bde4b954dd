// Part show prepares games of Diplomacy for readers: the kind's part of a report, over
// any number of games, and the replay of one game.
//
// It accepts outcomes and notes from anywhere, broken ones too, and shows what it can read.
// The same games make the same pictures.
//
// It does not draw the board (package drawing) or lay out pages.

package diplomacy

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"

	"parley/world"
	"parley/worlds/diplomacy/rules"
)

// report is the kind's part of a report.
type report struct {
	agents []string // in order of appearance
	years  []int
	later  map[int]bool // years that are not the start of some game

	scores    samples // by agent and power
	centres   samples // by power and year
	relations samples // by power and power
	betrayals samples // by agent and agent: in a game
	success   samples // by agent and kind of order
	mix       samples // by agent and kind of order: its share
	conduct   samples // by agent and score
	ends      map[string]int
	invalid   map[string]map[string]int // by agent and reason
	moments   []showMoment
}

type key = [2]string

// samples holds numbers of episodes by two names.
type samples map[key]*world.Sample

func (s samples) at(a, b string, within world.Bounds) *world.Sample {
	k := key{a, b}
	if s[k] == nil {
		s[k] = &world.Sample{Bounds: within}
	}
	return s[k]
}

// showScores lists the names of the scores of each power.
func showScores() []string {
	return []string{"score", "centres", "survived", "solo", "success", "invalid", "messages", "betrayals", "kept"}
}

// bounds returns the bounds of a power's score.
func bounds(score, scoring string) world.Bounds {
	switch score {
	case "score":
		return scoreBounds(scoring)
	case "messages", "betrayals":
		return world.AtLeast0()
	case "centres":
		return world.Bounds{High: rules.Centres}
	default:
		return world.Share()
	}
}

// showMoment is a key showMoment and its episode.
type showMoment struct {
	episode int
	Moment
}

// exhibitor returns an empty part of a report.
func exhibitor() world.Exhibitor {
	return &report{
		later: map[int]bool{}, scores: samples{}, centres: samples{}, relations: samples{}, betrayals: samples{}, success: samples{}, mix: samples{}, conduct: samples{},
		ends: map[string]int{}, invalid: map[string]map[string]int{},
	}
}

// agentOf returns the agent in a seat, or the seat's name if the lineup does not say.
func agentOf(p world.Played, seat string) string {
	if agent := p.Spec.Lineup[seat]; agent != "" {
		return agent
	}
	return seat
}

// Add adds a game.
func (r *report) Add(p world.Played) {
	raw, _ := p.Outcome.Data.(json.RawMessage)
	var s recordSummary
	if p.Outcome.Failed != "" || json.Unmarshal(raw, &s) != nil || len(s.Powers) == 0 {
		return
	}
	r.ends[s.Ended]++
	byAgent := map[string][]*recordPower{}
	for _, power := range rules.PowerNames() {
		st := s.Powers[power]
		if st == nil {
			continue
		}
		agent := agentOf(p, power)
		if !slices.Contains(r.agents, agent) {
			r.agents = append(r.agents, agent)
		}
		byAgent[agent] = append(byAgent[agent], st)
	}
	for agent, list := range byAgent {
		r.addAgent(p.Unit, agent, list)
	}
	r.addScores(p, s.Scoring)
	r.addCentres(p.Unit, s.Centres)
	for a, row := range s.Relations {
		for b, v := range row {
			r.relations.at(a, b, world.Bounds{Low: -2, High: 2}).Add(p.Unit, v)
		}
	}
	r.addBetrayals(p, &s)
	for _, m := range s.Moments {
		r.moments = append(r.moments, showMoment{p.Episode, m})
	}
	r.trim()
}

// addBetrayals counts the betrayals of one game, for each agent and each other seat's agent. Nothing is known about games without
// relations.
func (r *report) addBetrayals(p world.Played, s *recordSummary) {
	if len(s.Relations) == 0 {
		return
	}
	count := map[key]float64{}
	for a := range s.Powers {
		for b := range s.Powers {
			if a != b {
				count[key{agentOf(p, a), agentOf(p, b)}] += 0
			}
		}
	}
	for by, power := range s.Powers {
		if power == nil {
			continue
		}
		for of, n := range power.Victims { // not the moments: a summary keeps only some of them
			if s.Powers[of] != nil && by != of {
				count[key{agentOf(p, by), agentOf(p, of)}] += float64(max(0, n))
			}
		}
	}
	for k, n := range count {
		r.betrayals.at(k[0], k[1], world.AtLeast0()).Add(p.Unit, n)
	}
}

// addScores adds the scores of the outcome, the same that other tables show: a power that
// never gave a legal order has none.
func (r *report) addScores(p world.Played, scoring string) {
	values := map[key][]float64{}
	for _, s := range p.Outcome.Scores {
		if s.Seat == "" || !slices.Contains(showScores(), s.Name) || math.IsNaN(s.Value) || math.IsInf(s.Value, 0) {
			continue
		}
		k := key{agentOf(p, s.Seat), s.Name}
		values[k] = append(values[k], s.Value)
		if s.Name == "score" {
			r.scores.at(k[0], s.Seat, bounds(s.Name, scoring)).Add(p.Unit, s.Value)
		}
	}
	for k, list := range values {
		r.conduct.at(k[0], k[1], bounds(k[1], scoring)).Add(p.Unit, list...)
	}
}

// maxShowMoments is how many moments a report shows.
const maxShowMoments = 20

// trim keeps the moments with the most weight, the earliest of equal ones.
func (r *report) trim() {
	slices.SortStableFunc(r.moments, func(a, b showMoment) int { return b.Weight - a.Weight })
	r.moments = r.moments[:min(len(r.moments), maxShowMoments)]
}

func (r *report) addCentres(u world.Unit, counts []recordCount) {
	for i, c := range counts {
		if i > 0 {
			r.later[c.Year] = true
		}
		if !slices.Contains(r.years, c.Year) {
			r.years = append(r.years, c.Year)
		}
		for _, power := range rules.PowerNames() {
			r.centres.at(power, fmt.Sprint(c.Year), bounds("centres", "")).Add(u, float64(c.Centres[power]))
		}
	}
}

// addAgent adds what an agent did in one game, in all of its seats.
func (r *report) addAgent(u world.Unit, agent string, list []*recordPower) {
	for _, kind := range orderKinds() {
		var success, mix []float64
		for _, st := range list {
			n, succeeded := st.Tried(kind)
			if n > 0 {
				success = append(success, float64(succeeded)/float64(n))
			}
			if all := ordered(st); all > 0 {
				mix = append(mix, float64(n)/float64(all))
			}
		}
		r.success.at(agent, kind, world.Share()).Add(u, success...)
		r.mix.at(agent, kind, world.Share()).Add(u, mix...)
	}
	if r.invalid[agent] == nil {
		r.invalid[agent] = map[string]int{}
	}
	for _, st := range list {
		for reason, n := range st.Refused {
			r.invalid[agent][reason] += n
		}
		if st.Missing > 0 {
			r.invalid[agent]["order: missing"] += st.Missing
		}
	}
}

// orderKinds lists the kinds of orders of movement phases.
func orderKinds() []string { return []string{"move", "support", "convoy", "hold"} }

// ordered counts a power's orders in movement phases.
func ordered(p *recordPower) int {
	all := 0
	for _, kind := range orderKinds() {
		n, _ := p.Tried(kind)
		all += n
	}
	return all
}

// Exhibits returns the tables and charts.
func (r *report) Exhibits() []world.Exhibit {
	if len(r.agents) == 0 {
		return nil
	}
	slices.Sort(r.years)
	powers := rules.PowerNames()
	out := []world.Exhibit{
		{Name: "diplomacy-conduct", Title: "How agents did", Show: r.showConduct(), Caption: "Means over games; an agent in several seats of a game counts once for it. Success: share of moves, supports and convoys that succeeded. Invalid: share of written orders that were not legal. Betrayals: attacks on a power that called the attacker friendly or ally. Kept: share of checked promises that were kept."},
		{Name: "diplomacy-powers", Title: "Score by power and agent", Show: heat("agent", "power", "score", r.agents, powers, r.scores), Caption: "The mean score of each agent with each power."},
		{Name: "diplomacy-centres", Title: "Centres over the years", Show: r.showCentres(), Caption: "The mean number of supply centres of each power after each year; the first point is the start."},
		{Name: "diplomacy-orders", Title: "Order success", Show: r.showOrders(r.success, "success"), Caption: "The share of orders of each kind that succeeded. A support succeeds if it is matched and not cut."},
		{Name: "diplomacy-mix", Title: "Order mix", Show: r.showOrders(r.mix, "share"), Caption: "The share of each kind among the orders of movement phases."},
		{Name: "diplomacy-ends", Title: "How games ended", Show: r.showEnds()},
	}
	if len(r.relations) > 0 {
		out = append(out, world.Exhibit{Name: "diplomacy-relations", Title: "How powers saw each other", Show: heat("power", "seen", "relation", powers, powers, r.relations), Caption: "How the power of the row saw the power of the column, from -2 (enemy) to 2 (ally): the mean over movement phases."})
	}
	if len(r.betrayals) > 0 {
		out = append(out, world.Exhibit{Name: "diplomacy-betrayals", Title: "Who betrays whom", Show: heat("betrayer", "betrayed", "betrayals in a game", r.agents, r.agents, r.betrayals), Caption: "How often the agent of the row dislodged, or took a centre from, a power of the agent of the column that called it friendly or ally: the mean over games with both, over all of their seats."})
	}
	if grid := r.showInvalid(); len(grid.Rows) > 0 {
		out = append(out, world.Exhibit{Name: "diplomacy-refused", Title: "What was rejected", Show: grid, Caption: "Orders, messages and relations that could not be used, by reason, over all games."})
	}
	if len(r.moments) > 0 {
		out = append(out, world.Exhibit{Name: "diplomacy-moments", Title: "Key moments", Show: r.showMoments()})
	}
	return out
}

func (r *report) showConduct() world.Grid {
	grid := world.Grid{Columns: append([]string{"agent"}, showScores()...)}
	for _, a := range r.agents {
		row := []any{a}
		for _, name := range showScores() {
			if s := r.conduct[key{a, name}]; s.Episodes() > 0 {
				row = append(row, s)
			} else {
				row = append(row, "–")
			}
		}
		grid.Rows = append(grid.Rows, row)
	}
	return grid
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

func (r *report) showCentres() world.Curves {
	c := world.Curves{X: "year", Y: "centres"}
	for _, power := range rules.PowerNames() {
		curve := world.Curve{Name: power}
		for _, year := range r.years {
			if s := r.centres[key{power, fmt.Sprint(year)}]; s != nil {
				curve.Points = append(curve.Points, world.CurvePoint{X: float64(year), Sample: s, Given: !r.later[year]})
			}
		}
		c.Curves = append(c.Curves, curve)
	}
	return c
}

func (r *report) showOrders(from samples, what string) world.Estimates {
	e := world.Estimates{By: []string{"order", "agent"}, What: what}
	for _, kind := range orderKinds() {
		for _, a := range r.agents {
			if s := from[key{a, kind}]; s != nil && s.Episodes() > 0 {
				e.Rows = append(e.Rows, world.Estimated{Labels: []string{kind, a}, Sample: s})
			}
		}
	}
	return e
}

func (r *report) showEnds() world.Bars {
	b := world.Bars{X: "end", Y: "games", Labels: slices.Sorted(maps.Keys(r.ends)), Series: make([]world.BarSeries, 1)}
	for _, l := range b.Labels {
		b.Series[0].Values = append(b.Series[0].Values, float64(r.ends[l]))
	}
	return b
}

func (r *report) showInvalid() world.Grid {
	grid := world.Grid{Columns: append([]string{"reason"}, r.agents...)}
	reasons := map[string]bool{}
	for _, counts := range r.invalid {
		for reason := range counts {
			reasons[reason] = true
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(reasons)) {
		row := []any{reason}
		for _, a := range r.agents {
			row = append(row, r.invalid[a][reason])
		}
		grid.Rows = append(grid.Rows, row)
	}
	return grid
}

func (r *report) showMoments() world.Grid {
	grid := world.Grid{Columns: []string{"game", "phase", "kind", "what happened"}}
	for _, m := range r.moments {
		grid.Rows = append(grid.Rows, []any{fmt.Sprint(m.episode), m.Phase, m.Kind, m.Text})
	}
	return grid
}
