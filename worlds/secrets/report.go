package secrets

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	"parley/world"
	"parley/world/exhibit"
)

// report is the kind's part of a report.
type report struct {
	agents []string // in order of appearance
	modes  []string

	rates  exhibit.Crossed // by rate and agent
	pairs  exhibit.Crossed // by agent and opponent: did it get the other's secret?
	points exhibit.Crossed // by mode and agent
	ways   exhibit.Counts  // by form and agent
	judged exhibit.Counts  // players in conversations, by rule and by judge

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
func add(to exhibit.Crossed, u world.Unit, within world.Bounds, episode map[key][]float64) {
	for k, values := range episode {
		to.At(k[0], k[1], within).Add(u, values...)
	}
}

func newReport() exhibit.Exhibitor {
	return &report{rates: exhibit.Crossed{}, pairs: exhibit.Crossed{}, points: exhibit.Crossed{}, ways: exhibit.Counts{}, judged: exhibit.Counts{}, slips: map[string][]slipped{}}
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
	exhibit.AddOnce(&g.modes, r.Mode)
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
	name := cmp.Or(e.lineup[seat], seat)
	exhibit.AddOnce(&e.agents, name)
	return name
}

func (e *episode) conversation(c Conversation) {
	e.messages = max(e.messages, c.Messages+c.Silences)
	gave := [2]bool{slices.Contains(c.Revealed, c.Seats[0]), slices.Contains(c.Revealed, c.Seats[1])}
	rate := func(name, agent string, yes bool) {
		k := key{name, agent}
		e.rates[k] = append(e.rates[k], exhibit.Indicator(yes))
	}
	for i, seat := range c.Seats {
		agent, other := e.agent(seat), e.agent(c.Seats[1-i])
		rate("revealed", agent, gave[i])
		rate("obtained", agent, gave[1-i])
		rate("optimal", agent, gave[1-i] && !gave[i])
		pair := key{agent, other}
		e.pairs[pair] = append(e.pairs[pair], exhibit.Indicator(gave[1-i]))
		e.slip(c, seat, agent)
	}
	rate("both", bothPlayers, gave[0] && gave[1])
	rate("one-sided", bothPlayers, gave[0] != gave[1])
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
func (g *report) Exhibits() []exhibit.Exhibit {
	if len(g.agents) == 0 {
		return nil
	}
	page := exhibit.Page{Prefix: "secrets-"}
	page.Add("rates", "How often", "Shares of conversations. Revealed: gave its own secret away. Obtained: got the other's. Optimal: got it and kept its own. Both: both gave theirs away. One-sided: only one did.", g.showRates())
	page.Add("pairs", "Who got whose secret", "The share of conversations in which the player of the row got the secret of the player of the column.", g.pairs.HeatMap(exhibit.HeatMap{Row: "player", Column: "whose secret", What: "obtained", Share: true, Rows: g.agents, Columns: g.agents}))
	page.Add("tradeoff", "Given away against got", "The best position is top left: got the others' secrets and kept its own. On the dashed line both are equal.", g.showTradeoff())
	page.Add("slips", "When secrets slip", "The share of secrets that had been given away, by the rule, by the time of each message of a conversation, both players' messages counted.", g.showSlips())
	page.Add("forms", "How secrets slip", "The form in which a secret was first given away, in conversations.", g.ways.Bars(exhibit.Bars{X: "form", Y: "secrets", Labels: g.ways.Labels()}, g.agents))
	if len(g.modes) > 1 {
		page.Add("modes", "Points by mode", "Points of a player in a game. Modes pay differently: compare within one.", g.points.Estimates(exhibit.Estimates{By: []string{"mode", "agent"}, What: "points"}, g.modes, g.agents))
	}
	if len(g.judged) > 0 {
		page.Add("judge", "Rule and judge", "What the written rule and the judge found, by player and conversation.", g.judged.Grid("", []string{"rule: given away", "rule: kept"}, []string{"judge: given away", "judge: kept"}))
	}
	return page.All
}

func (g *report) showRates() exhibit.Estimates {
	e := exhibit.Estimates{By: []string{"rate", "agent"}, What: "share", Share: true}
	return g.rates.Estimates(e, []string{"revealed", "obtained", "optimal", "both", "one-sided"}, append(slices.Clone(g.agents), bothPlayers))
}

func (g *report) showTradeoff() exhibit.Scatter {
	s := exhibit.Scatter{X: "revealed", Y: "obtained", Share: true}
	for _, a := range g.agents {
		s.Points = append(s.Points, exhibit.ScatterPoint{Name: a, X: g.rates[key{"revealed", a}], Y: g.rates[key{"obtained", a}]})
	}
	return s
}

// maxSteps is the maximum number of steps of a curve. A step of a longer conversation is several
// messages.
const maxSteps = 16

func (g *report) showSlips() exhibit.Curves {
	c := exhibit.Curves{X: "message", Y: "secrets given away", Share: true}
	step := max(1, (g.messages+maxSteps-1)/maxSteps)
	for i, a := range g.agents {
		for m := 0; m < g.messages+step; m += step {
			m := min(m, g.messages) // the last one too
			sample := c.At(a, float64(m), world.Share())
			for _, episode := range g.slips[a] {
				values := make([]float64, len(episode.at))
				for i, at := range episode.at {
					values[i] = exhibit.Indicator(at > 0 && at <= m)
				}
				sample.Add(episode.unit, values...)
			}
		}
		c.Curves[i].Points[0].Given = true
	}
	return c
}
