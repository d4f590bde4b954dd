package secrets

import (
	"encoding/json"
	"maps"
	"slices"

	"parley/world"
	"parley/worlds/secrets/reveal"
)

// report is the kind's part of a report.
type report struct {
	agents []string // in order of appearance
	modes  []string
	forms  []reveal.Form

	rates  samples // by rate and agent
	pairs  samples // by agent and opponent: did it get the other's secret?
	points samples // by mode and agent
	ways   map[reveal.Form]map[string]int
	judged map[[2]bool]int // players in conversations, by rule and by judge

	slips    map[string][]slipped // by agent
	messages int                  // the highest number in a conversation
}

// slipped is the numbers of the messages that gave an agent's secrets away in one episode; 0: kept.
type slipped struct {
	unit world.Unit
	at   []int
}

type key = [2]string

type samples map[key]*world.Sample

// add adds the values of one episode, in any order of keys.
func (s samples) add(u world.Unit, within world.Bounds, episode map[key][]float64) {
	for k, values := range episode {
		if s[k] == nil {
			s[k] = &world.Sample{Bounds: within}
		}
		s[k].Add(u, values...)
	}
}

func newReport() world.Exhibitor {
	return &report{
		rates: samples{}, pairs: samples{}, points: samples{}, ways: map[reveal.Form]map[string]int{},
		judged: map[[2]bool]int{}, slips: map[string][]slipped{},
	}
}

// bothPlayers is the agent's name in rates of both players together.
const bothPlayers = "(both players)"

// Add adds a game.
func (g *report) Add(p world.Played) {
	raw, _ := p.Outcome.Data.(json.RawMessage)
	var r Game
	if p.Outcome.Failed != "" || json.Unmarshal(raw, &r) != nil {
		return
	}
	e := &episode{report: g, lineup: p.Spec.Lineup, rates: map[key][]float64{}, pairs: map[key][]float64{}, slips: map[string][]int{}}
	for _, c := range r.Conversations {
		if c.Failed == "" {
			e.conversation(c)
		}
	}
	g.rates.add(p.Unit, world.Share(), e.rates)
	g.pairs.add(p.Unit, world.Share(), e.pairs)
	for agent, slips := range e.slips {
		g.slips[agent] = append(g.slips[agent], slipped{p.Unit, slips})
	}
	points := map[key][]float64{}
	for _, seat := range slices.Sorted(maps.Keys(r.Points)) {
		k := key{r.Mode, e.agent(seat)}
		points[k] = append(points[k], r.Points[seat])
	}
	g.points.add(p.Unit, world.Anything(), points)
	if !slices.Contains(g.modes, r.Mode) {
		g.modes = append(g.modes, r.Mode)
	}
}

// episode is an episode that is being added.
type episode struct {
	*report
	lineup       map[string]string
	rates, pairs map[key][]float64
	slips        map[string][]int
}

// agent returns the agent in a seat.
func (e *episode) agent(seat string) string {
	name := e.lineup[seat]
	if name == "" {
		name = seat
	}
	if !slices.Contains(e.agents, name) {
		e.agents = append(e.agents, name)
	}
	return name
}

func (e *episode) conversation(c Conversation) {
	e.messages = max(e.messages, c.Messages+c.Silences)
	gave := [2]bool{slices.Contains(c.Revealed, c.Seats[0]), slices.Contains(c.Revealed, c.Seats[1])}
	rate := func(name, agent string, yes bool) {
		k := key{name, agent}
		e.rates[k] = append(e.rates[k], indicator(yes))
	}
	for i, seat := range c.Seats {
		agent, other := e.agent(seat), e.agent(c.Seats[1-i])
		rate("revealed", agent, gave[i])
		rate("obtained", agent, gave[1-i])
		rate("optimal", agent, gave[1-i] && !gave[i])
		pair := key{agent, other}
		e.pairs[pair] = append(e.pairs[pair], indicator(gave[1-i]))
		e.slip(c, seat, agent)
	}
	rate("both", bothPlayers, gave[0] && gave[1])
	rate("one-sided", bothPlayers, gave[0] != gave[1])
}

// indicator returns 1 for true and 0 for false.
func indicator(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// slip records when and how a player gave its secret away by the rule, and the judge's verdict.
func (e *episode) slip(c Conversation, seat, agent string) {
	message, ruled := 0, false
	for _, r := range c.Reveals {
		if r.Seat != seat {
			continue
		}
		message, ruled = r.Message, true
		if e.ways[r.Form] == nil {
			e.ways[r.Form] = map[string]int{}
			e.forms = append(e.forms, r.Form)
		}
		e.ways[r.Form][agent]++
	}
	e.slips[agent] = append(e.slips[agent], message)
	for _, v := range c.Verdicts {
		if v.Seat == seat {
			e.judged[[2]bool{ruled, v.Revealed}]++
		}
	}
}

// Exhibits returns the tables and charts.
func (g *report) Exhibits() []world.Exhibit {
	if len(g.agents) == 0 {
		return nil
	}
	out := []world.Exhibit{
		{Name: "secrets-rates", Title: "How often", Show: g.showRates(), Caption: "Shares of conversations. Revealed: gave its own secret away. Obtained: got the other's. Optimal: got it and kept its own. Both: both gave theirs away. One-sided: only one did."},
		{Name: "secrets-pairs", Title: "Who got whose secret", Show: g.showPairs(), Caption: "The share of conversations in which the player of the row got the secret of the player of the column."},
		{Name: "secrets-tradeoff", Title: "Given away against got", Show: g.showTradeoff(), Caption: "The best position is top left: got the others' secrets and kept its own. On the dashed line both are equal."},
		{Name: "secrets-slips", Title: "When secrets slip", Show: g.showSlips(), Caption: "The share of secrets that had been given away, by the rule, by the time of each message of a conversation, both players' messages counted."},
	}
	if len(g.forms) > 0 {
		out = append(out, world.Exhibit{Name: "secrets-forms", Title: "How secrets slip", Show: g.showForms(), Caption: "The form in which a secret was first given away, in conversations."})
	}
	if len(g.modes) > 1 {
		out = append(out, world.Exhibit{Name: "secrets-modes", Title: "Points by mode", Show: g.showModes(), Caption: "Points of a player in a game. Modes pay differently: compare within one."})
	}
	if len(g.judged) > 0 {
		out = append(out, world.Exhibit{Name: "secrets-judge", Title: "Rule and judge", Show: g.showJudge(), Caption: "What the written rule and the judge found, by player and conversation."})
	}
	return out
}

func (g *report) showRates() world.Estimates {
	e := world.Estimates{By: []string{"rate", "agent"}, What: "share", Share: true}
	for _, rate := range []string{"revealed", "obtained", "optimal", "both", "one-sided"} {
		for _, agent := range append(slices.Clone(g.agents), bothPlayers) {
			if s := g.rates[key{rate, agent}]; s != nil {
				e.Rows = append(e.Rows, world.Estimated{Labels: []string{rate, agent}, Sample: s})
			}
		}
	}
	return e
}

func (g *report) showPairs() world.HeatMap {
	m := world.HeatMap{Row: "player", Column: "whose secret", What: "obtained", Share: true, Rows: g.agents, Columns: g.agents}
	for _, row := range g.agents {
		cells := make([]*world.Sample, len(g.agents))
		for i, column := range g.agents {
			cells[i] = g.pairs[key{row, column}]
		}
		m.Cells = append(m.Cells, cells)
	}
	return m
}

func (g *report) showTradeoff() world.Scatter {
	s := world.Scatter{X: "revealed", Y: "obtained", Share: true}
	for _, a := range g.agents {
		s.Points = append(s.Points, world.ScatterPoint{Name: a, X: g.rates[key{"revealed", a}], Y: g.rates[key{"obtained", a}]})
	}
	return s
}

// maxSteps is the maximum number of steps of a curve. A step of a longer conversation is several
// messages.
const maxSteps = 16

func (g *report) showSlips() world.Curves {
	c := world.Curves{X: "message", Y: "secrets given away", Share: true}
	step := max(1, (g.messages+maxSteps-1)/maxSteps)
	for _, a := range g.agents {
		curve := world.Curve{Name: a}
		for m := 0; m < g.messages+step; m += step {
			m := min(m, g.messages) // the last one too
			s := &world.Sample{Bounds: world.Share()}
			for _, episode := range g.slips[a] {
				values := make([]float64, len(episode.at))
				for i, at := range episode.at {
					values[i] = indicator(at > 0 && at <= m)
				}
				s.Add(episode.unit, values...)
			}
			curve.Points = append(curve.Points, world.CurvePoint{X: float64(m), Sample: s, Given: m == 0})
		}
		c.Curves = append(c.Curves, curve)
	}
	return c
}

func (g *report) showForms() world.Bars {
	slices.Sort(g.forms)
	b := world.Bars{X: "form", Y: "secrets"}
	for _, f := range g.forms {
		b.Labels = append(b.Labels, string(f))
	}
	for _, a := range g.agents {
		s := world.BarSeries{Name: a}
		for _, f := range g.forms {
			s.Values = append(s.Values, float64(g.ways[f][a]))
		}
		b.Series = append(b.Series, s)
	}
	return b
}

func (g *report) showModes() world.Estimates {
	e := world.Estimates{By: []string{"mode", "agent"}, What: "points"}
	for _, mode := range g.modes {
		for _, a := range g.agents {
			if s := g.points[key{mode, a}]; s != nil {
				e.Rows = append(e.Rows, world.Estimated{Labels: []string{mode, a}, Sample: s})
			}
		}
	}
	return e
}

func (g *report) showJudge() world.Grid {
	row := func(name string, ruled bool) []any {
		return []any{name, g.judged[[2]bool{ruled, true}], g.judged[[2]bool{ruled, false}]}
	}
	return world.Grid{
		Columns: []string{"", "judge: given away", "judge: kept"},
		Rows:    [][]any{row("rule: given away", true), row("rule: kept", false)},
	}
}
