package secrets

import (
	"encoding/json"
	"maps"
	"slices"

	"parley/world"
)

// report is the kind's part of a report.
type report struct {
	agents []string // in order of appearance
	modes  []string

	rates  world.Crossed // by rate and agent
	pairs  world.Crossed // by agent and opponent: did it get the other's secret?
	points world.Crossed // by mode and agent
	ways   world.Counts  // by form and agent
	judged world.Counts  // players in conversations, by rule and by judge

	slips    map[string][]slipped // by agent
	messages int                  // the highest number in a conversation
}

// slipped is the numbers of the messages that gave an agent's secrets away in one episode; 0: kept.
type slipped struct {
	unit world.Unit
	at   []int
}

type key = [2]string

// add adds the values of one episode, in any order of keys.
func add(to world.Crossed, u world.Unit, within world.Bounds, episode map[key][]float64) {
	for k, values := range episode {
		to.At(k[0], k[1], within).Add(u, values...)
	}
}

func newReport() world.Exhibitor {
	return &report{rates: world.Crossed{}, pairs: world.Crossed{}, points: world.Crossed{}, ways: world.Counts{}, judged: world.Counts{}, slips: map[string][]slipped{}}
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
	add(g.rates, p.Unit, world.Share(), e.rates)
	add(g.pairs, p.Unit, world.Share(), e.pairs)
	for agent, slips := range e.slips {
		g.slips[agent] = append(g.slips[agent], slipped{p.Unit, slips})
	}
	points := map[key][]float64{}
	for _, seat := range slices.Sorted(maps.Keys(r.Points)) {
		k := key{r.Mode, e.agent(seat)}
		points[k] = append(points[k], r.Points[seat])
	}
	add(g.points, p.Unit, world.Anything(), points)
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
		e.ways[key{string(r.Form), agent}]++
	}
	e.slips[agent] = append(e.slips[agent], message)
	for _, v := range c.Verdicts {
		if v.Seat == seat {
			e.judged[key{"rule: " + found(ruled), "judge: " + found(v.Revealed)}]++
		}
	}
}

// found returns what a rule or a judge found.
func found(revealed bool) string {
	if revealed {
		return "given away"
	}
	return "kept"
}

// Exhibits returns the tables and charts.
func (g *report) Exhibits() []world.Exhibit {
	if len(g.agents) == 0 {
		return nil
	}
	out := []world.Exhibit{
		{Name: "secrets-rates", Title: "How often", Show: g.showRates(), Caption: "Shares of conversations. Revealed: gave its own secret away. Obtained: got the other's. Optimal: got it and kept its own. Both: both gave theirs away. One-sided: only one did."},
		{Name: "secrets-pairs", Title: "Who got whose secret", Show: g.pairs.HeatMap(world.HeatMap{Row: "player", Column: "whose secret", What: "obtained", Share: true, Rows: g.agents, Columns: g.agents}), Caption: "The share of conversations in which the player of the row got the secret of the player of the column."},
		{Name: "secrets-tradeoff", Title: "Given away against got", Show: g.showTradeoff(), Caption: "The best position is top left: got the others' secrets and kept its own. On the dashed line both are equal."},
		{Name: "secrets-slips", Title: "When secrets slip", Show: g.showSlips(), Caption: "The share of secrets that had been given away, by the rule, by the time of each message of a conversation, both players' messages counted."},
	}
	if forms := g.ways.Labels(); len(forms) > 0 {
		out = append(out, world.Exhibit{Name: "secrets-forms", Title: "How secrets slip", Show: g.ways.Bars(world.Bars{X: "form", Y: "secrets", Labels: forms}, g.agents), Caption: "The form in which a secret was first given away, in conversations."})
	}
	if len(g.modes) > 1 {
		out = append(out, world.Exhibit{Name: "secrets-modes", Title: "Points by mode", Show: g.points.Estimates(world.Estimates{By: []string{"mode", "agent"}, What: "points"}, g.modes, g.agents), Caption: "Points of a player in a game. Modes pay differently: compare within one."})
	}
	if len(g.judged) > 0 {
		out = append(out, world.Exhibit{Name: "secrets-judge", Title: "Rule and judge", Show: g.judged.Grid("", []string{"rule: given away", "rule: kept"}, []string{"judge: given away", "judge: kept"}), Caption: "What the written rule and the judge found, by player and conversation."})
	}
	return out
}

func (g *report) showRates() world.Estimates {
	e := world.Estimates{By: []string{"rate", "agent"}, What: "share", Share: true}
	return g.rates.Estimates(e, []string{"revealed", "obtained", "optimal", "both", "one-sided"}, append(slices.Clone(g.agents), bothPlayers))
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
