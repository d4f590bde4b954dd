package scenario

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"parley/world"
	"parley/worlds/scenario/script"
)

// Exhibits returns all exhibits.
func (g *exhibitor) Exhibits() []world.Exhibit {
	if len(g.cells) == 0 {
		return nil
	}
	names := g.variations()
	out := []world.Exhibit{{Name: "scenario-ends", Title: "How it ended", Show: g.showEnds(names), Caption: "The share of episodes that ended so."}}
	out = append(out, g.curves(names)...)
	if len(g.events) > 0 {
		out = append(out, world.Exhibit{Name: "scenario-events", Title: "Events from outside", Show: g.showEvents(names), Caption: "The share of episodes in which an event happened at least once." + g.sharedCaption()})
	}
	out = append(out, g.talk()...)
	if len(g.actors) > 0 {
		out = append(out, world.Exhibit{Name: "scenario-actors", Title: "What actors did", Show: g.showActors(), Caption: "Means of an episode. Goals are the long-term ones; one with a new wording counts as one dropped and one added." + g.sharedCaption()})
	}
	return append(out, g.findings()...)
}

// showEnds shows how often episodes ended in each way.
func (g *exhibitor) showEnds(names []string) world.Estimates {
	return g.shares("why", names, g.whys, g.ends)
}

// shares returns the share of episodes in which each word occurs, by variation.
func (g *exhibitor) shares(what string, names, of []string, episodes [][]occurrence) world.Estimates {
	e := world.Estimates{By: []string{what, "variation"}, What: "share of episodes", Share: true}
	if len(names) == 1 {
		e.By = e.By[:1]
	}
	for _, one := range of {
		for cell, name := range names {
			s := &world.Sample{Bounds: world.Share()}
			for _, e := range episodes[cell] {
				happened := 0.0
				if slices.Contains(e.words, one) {
					happened = 1
				}
				s.Add(e.unit, happened)
			}
			e.Rows = append(e.Rows, world.Estimated{Labels: []string{one, name}[:len(e.By)], Sample: s})
		}
	}
	return e
}

// curves shows each metric over the turns by variation or, if each actor has it and the run
// has no variations, by actor.
func (g *exhibitor) curves(names []string) []world.Exhibit {
	var out []world.Exhibit
	shown := map[string]bool{}
	for _, m := range g.metrics {
		title, byActor := m.Name, m.Actor != "" && len(names) == 1
		if m.Actor != "" && !byActor {
			title = m.Actor + "'s " + m.Name
		}
		if shown[title] {
			continue
		}
		shown[title] = true
		c := world.Curves{X: "turn", Y: axis(m), Share: isShare(m)}
		for cell, name := range names {
			if !byActor {
				c.Curves = append(c.Curves, g.metricCurves(name, len(names) == 1, m, m.Actor, cell)...)
				continue
			}
			for _, actor := range g.actors {
				c.Curves = append(c.Curves, g.metricCurves(actor, false, m, actor, cell)...)
			}
		}
		c.Curves = append(c.Curves, g.thresholds(m)...)
		caption := legend(m)
		if len(out) == 0 { // once, for all
			caption = strings.TrimSpace("Means with 95% intervals over the episodes in which it is known after the turn; turns with fewer than three of them are left out. " + g.pastCaption() + caption)
		}
		out = append(out, world.Exhibit{
			Name:    "scenario-metric-" + strings.ReplaceAll(strings.ReplaceAll(title, "'s ", "-"), "_", "-"),
			Title:   strings.ReplaceAll(title, "_", " ") + " over the turns",
			Caption: caption, Show: c,
		})
	}
	return out
}

// metricCurves returns the curve of a metric or, if it has categories, the share of each. If alone, labels do not
// need the name.
func (g *exhibitor) metricCurves(name string, alone bool, m recordCurve, actor string, cell int) []world.Curve {
	if len(m.Categories) == 0 {
		return []world.Curve{g.curve(name, point{m.Name, actor, cell, 0})}
	}
	var out []world.Curve
	for _, category := range m.Categories {
		label := name + ": " + category
		if alone {
			label = category
		}
		out = append(out, g.curve(label, point{categoryScore(m.Name, category), actor, cell, 0}))
	}
	return out
}

// isShare reports whether a metric is shown as a share of episodes.
func isShare(c recordCurve) bool { return c.Boolean || len(c.Categories) > 0 }

// pastCaption says what counts once in a fork.
func (g *exhibitor) pastCaption() string {
	if g.past == 0 {
		return ""
	}
	text := fmt.Sprintf("All episodes continue copies of one: what was measured and found up to turn %d is the same in all and counts once. ", (g.past-1)/2)
	if g.past%2 == 0 {
		text += fmt.Sprintf("What happened in turn %d is a copy too, measured again in each. ", g.past/2)
	}
	return text
}

// sharedCaption says what the totals of a fork have in common.
func (g *exhibitor) sharedCaption() string {
	if g.past < 2 { // nothing was told yet
		return ""
	}
	return fmt.Sprintf(" What happened up to turn %d is a copy of one episode in all of them.", g.past/2)
}

// few is the number of episodes from which a curve has a band. With fewer, it would be far wider than the range of the metric.
const few = 3

// curve returns a metric over the turns. Turns that fewer than few episodes reached are left
// out. If there are fewer episodes at all, it is a line without a band.
func (g *exhibitor) curve(name string, at point) world.Curve {
	c := world.Curve{Name: name}
	for at.turn = 0; at.turn <= g.turns; at.turn++ {
		s := g.points[at]
		if s == nil || s.Episodes() < min(few, g.played[at.cell]) && !g.copied(at.turn) {
			continue
		}
		if s.Episodes() < few {
			mean := s.Estimate(0.95).Value
			s = &world.Sample{}
			s.Add(world.Unit{}, mean)
		}
		given := at.turn == 0 && s.SD() == 0 // what the scenario starts from
		c.Points = append(c.Points, world.CurvePoint{X: float64(at.turn), Sample: s, Given: given})
	}
	return c
}

// thresholds returns the thresholds as lines from the first turn to the last.
func (g *exhibitor) thresholds(m recordCurve) []world.Curve {
	var out []world.Curve
	for _, t := range []struct {
		level string
		limit *float64
	}{{"warning", m.Warning}, {"critical", m.Critical}} {
		if t.limit == nil || len(m.Categories) > 0 {
			continue
		}
		c := world.Curve{Name: t.level + " threshold", Level: true}
		for _, x := range []float64{0, float64(g.turns)} {
			s := &world.Sample{}
			s.Add(world.Unit{}, *t.limit)
			c.Points = append(c.Points, world.CurvePoint{X: x, Sample: s, Given: true})
		}
		out = append(out, c)
	}
	return out
}

func axis(c recordCurve) string {
	if len(c.Categories) > 0 {
		return "share of episodes"
	}
	if c.Unit != "" {
		return c.Unit
	}
	return strings.ReplaceAll(c.Name, "_", " ")
}

// legend explains the numbers of a metric.
func legend(c recordCurve) string {
	switch {
	case c.Boolean:
		return "The share of episodes in which it is true."
	case len(c.Categories) > 0:
		return "The share of episodes in which it is so. From least to most: " + strings.Join(c.Categories, ", ") + "."
	}
	return ""
}

func (g *exhibitor) showEvents(names []string) world.Estimates {
	return g.shares("event", names, g.events, g.fired)
}

// talk shows who wrote to whom, and who joined with whom.
func (g *exhibitor) talk() []world.Exhibit {
	var out []world.Exhibit
	picture, spoke := newGraph(g.actors), false
	heat := world.HeatMap{Row: "from", Column: "to", What: "messages in an episode", Rows: g.actors, Columns: g.actors}
	for i, from := range g.actors {
		cells := make([]*world.Sample, len(g.actors))
		for j, to := range g.actors {
			if s := g.wrote[[2]string{from, to}]; s != nil && s.Episodes() > 0 {
				cells[j], picture.wrote[i][j] = s, s.Estimate(0.95).Value
				spoke = spoke || picture.wrote[i][j] > 0
			}
		}
		heat.Cells = append(heat.Cells, cells)
	}
	if spoke {
		out = append(out,
			world.Exhibit{Name: "scenario-talk-graph", Title: "Who wrote to whom", Show: world.Figure{SVG: picture.svg(true, true), Alt: "The actors on a circle; an arrow from one to another is as wide as the messages between them are many. The numbers are in the map below."}},
			world.Exhibit{Name: "scenario-talk", Title: "Private messages", Show: heat, Caption: "Messages of an episode, from the actor of the row to that of the column."})
	}
	if len(g.pacts) > 0 {
		slices.SortStableFunc(g.pacts, func(a, b *pactCount) int { return cmp.Or(b.proposed-a.proposed, b.formed-a.formed) })
		grid := world.Grid{Columns: []string{"members", "proposed", "formed"}}
		for _, p := range g.pacts {
			grid.Rows = append(grid.Rows, []any{p.members, p.proposed, p.formed})
		}
		out = append(out, world.Exhibit{Name: "scenario-coalitions", Title: "Coalitions", Show: grid, Caption: "How often each was proposed and formed, over all episodes and turns."})
	}
	return out
}

func (g *exhibitor) showActors() world.Grid {
	grid := world.Grid{Columns: []string{"actor", "decisions", "silences", "statements", "private messages", "goals added", "goals dropped"}}
	for _, a := range g.actors {
		c := g.conduct[a]
		grid.Rows = append(grid.Rows, []any{a, &c.decisions, &c.silences, &c.statements, &c.messages, &c.added, &c.dropped})
	}
	return grid
}

// findings shows what checks found.
func (g *exhibitor) findings() []world.Exhibit {
	if len(g.checks) == 0 {
		return nil
	}
	grid := world.Grid{Columns: append([]string{"check", "made", "unknown", "share passed", "issues in an episode"}, script.Severities()...)}
	for _, c := range g.checks {
		row := []any{strings.ReplaceAll(c.check, "_", " "), c.made, c.unknown, &c.passed, &c.issues}
		for _, severity := range script.Severities() {
			row = append(row, c.severe[severity])
		}
		grid.Rows = append(grid.Rows, row)
	}
	out := []world.Exhibit{{Name: "scenario-checks", Title: "What checks found", Show: grid, Caption: strings.TrimSpace("The share passed is of those that could be read. Issues by severity are counted over all episodes. " + g.pastCaption())}}
	if len(g.issues) == 0 {
		return out
	}
	list := world.Grid{Columns: []string{"severity", "episode", "turn", "check", "actor", "issue"}}
	for _, i := range g.issues {
		list.Rows = append(list.Rows, []any{i.Severity, i.episode, i.Turn, strings.ReplaceAll(i.Check, "_", " "), i.Actor, i.Text})
	}
	return append(out, world.Exhibit{Name: "scenario-issues", Title: "The gravest issues", Show: list, Caption: fmt.Sprintf("At most %d; all of them are in the run file.", maxIssues)})
}
