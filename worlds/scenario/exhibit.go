package scenario

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"parley/world"
	"parley/world/exhibit"
	"parley/worlds/scenario/script"
)

// exhibitor collects the outcomes of episodes for the exhibits of a report. It skips those that are invalid,
// because a run file may come from anywhere.
type exhibitor struct {
	cells   []string // the variations, in the order of their first episodes
	actors  []string
	metrics []metricCurve // each metric without values
	turns   int           // the largest number of turns of an episode
	past    int           // turns of the first strand that all episodes have copies of: see world.Played
	first   int           // the episode whose copies count

	played []int // episodes by cell
	points map[point]*world.Sample
	fired  [][]occurrence // by cell: the events of each episode that did not fail
	events []string
	ends   [][]occurrence // by cell: why each episode ended
	whys   []string

	wrote   exhibit.Crossed
	conduct exhibit.Crossed // what an actor did, by actor and column of the table
	pacts   []*pactCount
	checks  []*checkCount
	issues  []sighting
}

type (
	// point identifies a point of a curve. Its turn is atEnd for the value after the last turn of each episode.
	point struct {
		score, actor string // see categoryScore
		cell, turn   int
	}
	// occurrence has the events of one episode, or why it ended.
	occurrence struct {
		unit  world.Unit
		words []string
	}
	// pactCount counts how often a coalition was proposed and formed.
	pactCount struct {
		members          string
		proposed, formed int
	}
	checkCount struct {
		check          string
		passed, issues world.Sample
		made, unknown  int
		severe         map[string]int
	}
	// sighting is an issue and the episode it was found in.
	sighting struct {
		episode int
		Issue
	}
)

const atEnd = -1

func newExhibitor() exhibit.Exhibitor {
	return &exhibitor{points: map[point]*world.Sample{}, wrote: exhibit.Crossed{}, conduct: exhibit.Crossed{}}
}

// Add adds an episode. For a failed episode, only its end and its checks count.
func (g *exhibitor) Add(p world.Played) {
	raw, _ := p.Outcome.Data.(json.RawMessage)
	var r outcomeData
	if json.Unmarshal(raw, &r) != nil || len(r.Actors) == 0 || r.Turns < 0 || r.Turns > script.MaxTurns {
		return
	}
	if len(g.cells) == 0 {
		g.past, g.first = p.Past, p.Episode
	}
	cell := slices.Index(g.cells, p.Spec.Cell)
	if cell < 0 {
		cell = len(g.cells)
		g.cells, g.played = append(g.cells, p.Spec.Cell), append(g.played, 0)
		g.ends, g.fired = append(g.ends, nil), append(g.fired, nil)
	}
	g.ends[cell] = append(g.ends[cell], occurrence{p.Unit, []string{r.Ended}})
	exhibit.AddOnce(&g.whys, r.Ended)
	g.addChecks(p.Unit, p.Episode, r)
	if p.Outcome.Failed != "" {
		return
	}
	g.played[cell]++
	g.turns = max(g.turns, r.Turns)
	for _, c := range r.Metrics {
		g.addCurve(p.Unit, cell, r.Turns, c)
	}
	var happened []string
	for _, e := range r.Events {
		exhibit.AddOnce(&g.events, e.Name)
		exhibit.AddOnce(&happened, e.Name)
	}
	g.fired[cell] = append(g.fired[cell], occurrence{p.Unit, happened})
	g.addActors(p.Unit, r)
	g.addPacts(r.Coalitions)
}

// copied reports whether the measurements and findings of a turn are copies in all episodes of a fork. They are
// made in turn 2n of the first strand, while the next turn is decided.
func (g *exhibitor) copied(turn int) bool { return 2*turn < g.past }

func (g *exhibitor) addCurve(u world.Unit, cell, last int, c metricCurve) {
	if !slices.ContainsFunc(g.metrics, func(m metricCurve) bool { return m.Name == c.Name && m.Actor == c.Actor }) {
		m := c
		m.Values = nil
		g.metrics = append(g.metrics, m)
	}
	for turn, v := range c.Values {
		if v == nil || turn > script.MaxTurns {
			continue
		}
		turns := []int{turn}
		if turn == last {
			turns = append(turns, atEnd)
		}
		for _, s := range c.scores(*v) {
			for _, t := range turns {
				at := point{s.Name, c.Actor, cell, t}
				if g.points[at] == nil {
					g.points[at] = &world.Sample{Bounds: bounds(c.Range, isShare(c))}
				}
				if g.points[at].Episodes() == 0 || !g.copied(turn) {
					g.points[at].Add(u, s.Value)
				}
			}
		}
	}
}

func (g *exhibitor) addActors(u world.Unit, r outcomeData) {
	for _, a := range r.Actors {
		exhibit.AddOnce(&g.actors, a.Actor)
		messages := 0
		for _, other := range r.Actors {
			if other.Actor == a.Actor {
				continue
			}
			g.wrote.At(a.Actor, other.Actor, world.AtLeast0()).Add(u, float64(a.Wrote[other.Actor]))
			messages += a.Wrote[other.Actor]
		}
		for i, n := range []int{a.Decisions, a.Silences, a.Statements, messages, a.GoalsAdded, a.GoalsDropped} {
			g.conduct.At(a.Actor, conductColumns()[i], world.AtLeast0()).Add(u, float64(n))
		}
	}
}

// conductColumns are the columns of the table of what actors did.
func conductColumns() []string {
	return []string{"decisions", "silences", "statements", "private messages", "goals added", "goals dropped"}
}

func (g *exhibitor) addPacts(all []proposedCoalition) {
	for _, p := range all {
		members := strings.Join(p.Members, ", ")
		i := slices.IndexFunc(g.pacts, func(c *pactCount) bool { return c.members == members })
		if i < 0 {
			i = len(g.pacts)
			g.pacts = append(g.pacts, &pactCount{members: members})
		}
		g.pacts[i].proposed++
		if p.Formed {
			g.pacts[i].formed++
		}
	}
}

// maxIssues is the maximum number of issues that a report lists.
const maxIssues = 25

func (g *exhibitor) addChecks(u world.Unit, episode int, r outcomeData) {
	for _, t := range r.Checks {
		i := slices.IndexFunc(g.checks, func(c *checkCount) bool { return c.check == t.Check })
		if i < 0 {
			i = len(g.checks)
			g.checks = append(g.checks, &checkCount{
				check: t.Check, severe: map[string]int{}, passed: world.Sample{Bounds: world.Bounds{High: 1}}, issues: world.Sample{Bounds: world.AtLeast0()},
			})
		}
		c, found := g.checks[i], 0
		for _, issue := range r.Issues {
			if issue.Check == t.Check {
				found++
				if g.counts(episode, issue) {
					c.severe[issue.Severity]++
				}
			}
		}
		if known := t.Made - t.Unknown; known > 0 {
			c.passed.Add(u, float64(t.Passed)/float64(known))
			c.issues.Add(u, float64(found))
		}
		c.made += t.Made
		c.unknown += t.Unknown
	}
	for _, issue := range r.Issues {
		if g.counts(episode, issue) {
			g.issues = append(g.issues, sighting{episode, issue})
		}
	}
	rank := func(s sighting) int { return slices.Index(script.Severities(), s.Severity) }
	slices.SortStableFunc(g.issues, func(a, b sighting) int { return cmp.Compare(rank(b), rank(a)) })
	g.issues = g.issues[:min(len(g.issues), maxIssues)]
}

// counts reports whether an issue counts: only the first copy does.
func (g *exhibitor) counts(episode int, i Issue) bool {
	return episode == g.first || !g.copied(i.Turn)
}

// variations returns the names of the cells, without the prefix of keys that are set.
func (g *exhibitor) variations() []string {
	names := make([]string, len(g.cells))
	for i, cell := range g.cells {
		var parts []string
		for p := range strings.SplitSeq(cell, ", ") {
			if p != "set={}" {
				parts = append(parts, strings.TrimPrefix(p, "set."))
			}
		}
		names[i] = cmp.Or(strings.Join(parts, ", "), "as written")
		if len(g.cells) == 1 {
			names[i] = "all episodes"
		}
	}
	return names
}

// Exhibits returns all exhibits.
func (g *exhibitor) Exhibits() []exhibit.Exhibit {
	if len(g.cells) == 0 {
		return nil
	}
	names := g.variations()
	page := &exhibit.Page{Prefix: "scenario-"}
	g.curves(page, names)
	page.Add("final", "Metrics after the last turn", "Means with 95% intervals over the episodes in which the metric is known after their last turn. Of what is true or not, and of categories, it is the share of episodes."+g.sharedCaption(), g.final(names))
	page.Add("ends", "How it ended", "The share of episodes that ended so.", g.shares("why", names, g.whys, g.ends))
	page.Add("events", "Events from outside", "The share of episodes in which an event happened at least once."+g.sharedCaption(), g.shares("event", names, g.events, g.fired))
	g.talk(page)
	page.Add("actors", "What actors did", "Means of an episode. Goals are the long-term ones; one with a new wording counts as one dropped and one added."+g.sharedCaption(), g.showActors())
	g.findings(page)
	return page.All
}

// shares returns the share of episodes in which each word occurs, by variation.
func (g *exhibitor) shares(what string, names, of []string, episodes [][]occurrence) exhibit.Estimates {
	e := exhibit.Estimates{By: []string{what, "variation"}, What: "share of episodes", Share: true}
	if len(names) == 1 {
		e.By = e.By[:1]
	}
	for _, one := range of {
		for cell, name := range names {
			s := &world.Sample{Bounds: world.Share()}
			for _, e := range episodes[cell] {
				s.Add(e.unit, exhibit.Indicator(slices.Contains(e.words, one)))
			}
			e.Rows = append(e.Rows, exhibit.Estimated{Labels: []string{one, name}[:len(e.By)], Sample: s})
		}
	}
	return e
}

// curves shows each metric over the turns by variation or, if each actor has it and the run
// has no variations, by actor.
func (g *exhibitor) curves(page *exhibit.Page, names []string) {
	first := true
	shown := map[string]bool{}
	for _, m := range g.metrics {
		title, byActor := m.Name, m.Actor != "" && len(names) == 1
		if m.Actor != "" && !byActor {
			title = m.titled()
		}
		if shown[title] {
			continue
		}
		shown[title] = true
		c := exhibit.Curves{X: "turn", Y: axis(m), Share: isShare(m)}
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
		if first { // once, for all
			first = false
			caption = strings.TrimSpace("Means with 95% intervals over the episodes in which it is known after the turn; turns with fewer than three of them are left out. " + g.pastCaption() + caption)
		}
		page.Add("metric-"+strings.ReplaceAll(strings.ReplaceAll(title, "'s ", "-"), "_", "-"), strings.ReplaceAll(title, "_", " ")+" over the turns", caption, c)
	}
}

// final returns each metric after the last turn, by variation.
func (g *exhibitor) final(names []string) exhibit.Grid {
	grid := exhibit.Grid{Columns: append([]string{"metric"}, names...)}
	for _, m := range g.metrics {
		for _, s := range m.scores(0) {
			name := strings.ReplaceAll(m.titled(), "_", " ")
			if category, ok := strings.CutPrefix(s.Name, categoryScore(m.Name, "")); ok && len(m.Categories) > 0 {
				name += ": " + category
			} else if m.Unit != "" {
				name += " (" + m.Unit + ")"
			}
			row, known := []any{name}, false
			for cell := range names {
				sample := g.points[point{s.Name, m.Actor, cell, atEnd}]
				if sample == nil {
					row = append(row, nil)
					continue
				}
				row, known = append(row, sample), true
			}
			if known {
				grid.Rows = append(grid.Rows, row)
			}
		}
	}
	return grid
}

// titled returns the name of a metric, with its actor if each has it.
func (c metricCurve) titled() string {
	if c.Actor != "" {
		return c.Actor + "'s " + c.Name
	}
	return c.Name
}

// metricCurves returns the curve of a metric or, if it has categories, the share of each. If alone, labels do not
// need the name.
func (g *exhibitor) metricCurves(name string, alone bool, m metricCurve, actor string, cell int) []exhibit.Curve {
	if len(m.Categories) == 0 {
		return []exhibit.Curve{g.curve(name, point{m.Name, actor, cell, 0})}
	}
	var out []exhibit.Curve
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
func isShare(c metricCurve) bool { return c.Boolean || len(c.Categories) > 0 }

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

// minForBand is the number of episodes from which a curve has a band. With fewer, it would be far wider than the range of the metric.
const minForBand = 3

// curve returns a metric over the turns. Turns that fewer than few episodes reached are left
// out. If there are fewer episodes at all, it is a line without a band.
func (g *exhibitor) curve(name string, at point) exhibit.Curve {
	c := exhibit.Curve{Name: name}
	for at.turn = 0; at.turn <= g.turns; at.turn++ {
		s := g.points[at]
		if s == nil || s.Episodes() < min(minForBand, g.played[at.cell]) && !g.copied(at.turn) {
			continue
		}
		if s.Episodes() < minForBand {
			mean := s.Estimate(0.95).Value
			s = &world.Sample{}
			s.Add(world.Unit{}, mean)
		}
		given := at.turn == 0 && s.SD() == 0 // what the scenario starts from
		c.Points = append(c.Points, exhibit.CurvePoint{X: float64(at.turn), Sample: s, Given: given})
	}
	return c
}

// thresholds returns the thresholds as lines from the first turn to the last.
func (g *exhibitor) thresholds(m metricCurve) []exhibit.Curve {
	var out []exhibit.Curve
	for _, t := range []struct {
		level string
		limit *float64
	}{{"warning", m.Warning}, {"critical", m.Critical}} {
		if t.limit == nil || len(m.Categories) > 0 {
			continue
		}
		c := exhibit.Curve{Name: t.level + " threshold", Level: true}
		for _, x := range []float64{0, float64(g.turns)} {
			s := &world.Sample{}
			s.Add(world.Unit{}, *t.limit)
			c.Points = append(c.Points, exhibit.CurvePoint{X: x, Sample: s, Given: true})
		}
		out = append(out, c)
	}
	return out
}

func axis(c metricCurve) string {
	if len(c.Categories) > 0 {
		return "share of episodes"
	}
	if c.Unit != "" {
		return c.Unit
	}
	return strings.ReplaceAll(c.Name, "_", " ")
}

// legend explains the numbers of a metric.
func legend(c metricCurve) string {
	switch {
	case c.Boolean:
		return "The share of episodes in which it is true."
	case len(c.Categories) > 0:
		return "The share of episodes in which it is so. From least to most: " + strings.Join(c.Categories, ", ") + "."
	}
	return ""
}

// talk shows who wrote to whom, and who joined with whom.
func (g *exhibitor) talk(page *exhibit.Page) {
	heat := g.wrote.HeatMap(exhibit.HeatMap{Row: "from", Column: "to", What: "messages in an episode", Rows: g.actors, Columns: g.actors})
	if slices.ContainsFunc(heat.Cells, func(row []*world.Sample) bool {
		return slices.ContainsFunc(row, func(s *world.Sample) bool { return s != nil && s.Estimate(0.95).Value > 0 })
	}) {
		page.Add("talk", "Who wrote to whom", "Private messages of an episode, from the actor of the row to that of the column.", heat)
	}
	slices.SortStableFunc(g.pacts, func(a, b *pactCount) int { return cmp.Or(b.proposed-a.proposed, b.formed-a.formed) })
	grid := exhibit.Grid{Columns: []string{"members", "proposed", "formed"}}
	for _, p := range g.pacts {
		grid.Rows = append(grid.Rows, []any{p.members, p.proposed, p.formed})
	}
	page.Add("coalitions", "Coalitions", "How often each was proposed and formed, over all episodes and turns.", grid)
}

func (g *exhibitor) showActors() exhibit.Grid {
	grid := exhibit.Grid{Columns: append([]string{"actor"}, conductColumns()...)}
	for _, a := range g.actors {
		row := []any{a}
		for _, column := range conductColumns() {
			row = append(row, g.conduct[[2]string{a, column}])
		}
		grid.Rows = append(grid.Rows, row)
	}
	return grid
}

// findings shows what checks found.
func (g *exhibitor) findings(page *exhibit.Page) {
	grid := exhibit.Grid{Columns: append([]string{"check", "made", "unknown", "share passed", "issues in an episode"}, script.Severities()...)}
	for _, c := range g.checks {
		row := []any{strings.ReplaceAll(c.check, "_", " "), c.made, c.unknown, &c.passed, &c.issues}
		for _, severity := range script.Severities() {
			row = append(row, c.severe[severity])
		}
		grid.Rows = append(grid.Rows, row)
	}
	page.Add("checks", "What checks found", strings.TrimSpace("The share passed is of those that could be read. Issues by severity are counted over all episodes. "+g.pastCaption()), grid)
	list := exhibit.Grid{Columns: []string{"severity", "episode", "turn", "check", "actor", "issue"}}
	for _, i := range g.issues {
		list.Rows = append(list.Rows, []any{i.Severity, i.episode, i.Turn, strings.ReplaceAll(i.Check, "_", " "), i.Actor, i.Text})
	}
	page.Add("issues", "The gravest issues", fmt.Sprintf("At most %d; all of them are in the run file.", maxIssues), list)
}
