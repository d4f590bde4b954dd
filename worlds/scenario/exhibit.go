// Part show shows scenarios: exhibits of a report, the replay of an episode, and files for people to read.
//
// It reads notes and outcomes. Those that are invalid are skipped, because a run file may come from anywhere.

package scenario

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"parley/world"
	"parley/worlds/scenario/script"
)

// exhibitor collects the outcomes of episodes for the exhibits of a report.
type exhibitor struct {
	cells   []string // the variations, in the order of their first episodes
	actors  []string
	metrics []recordCurve // each metric without values
	turns   int           // the largest number of turns of an episode
	past    int           // turns of the first strand that all episodes have copies of: see world.Played
	first   int           // the episode whose copies count

	played []int // episodes by cell
	points map[point]*world.Sample
	fired  [][]occurrence // by cell: the events of each episode that did not fail
	events []string
	ends   [][]occurrence // by cell: why each episode ended
	whys   []string

	wrote   map[[2]string]*world.Sample
	conduct map[string]*conduct
	pacts   []*pactCount
	checks  []*checkCount
	issues  []sighting
}

type (
	// point identifies a point of a curve.
	point struct {
		score, actor string // see categoryScore
		cell, turn   int
	}
	// occurrence has the events of one episode, or why it ended.
	occurrence struct {
		unit  world.Unit
		words []string
	}
	// conduct counts what an actor did, with a value for each episode.
	conduct struct{ statements, messages, decisions, silences, added, dropped world.Sample }
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

// showExhibitor returns what makes the exhibits of scenarios for a report.
func showExhibitor() world.Exhibitor {
	return &exhibitor{points: map[point]*world.Sample{}, wrote: map[[2]string]*world.Sample{}, conduct: map[string]*conduct{}}
}

// Add adds an episode. For a failed episode, only its end and its checks count.
func (g *exhibitor) Add(p world.Played) {
	raw, _ := p.Outcome.Data.(json.RawMessage)
	var r recordOutcome
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
	note(&g.whys, r.Ended)
	g.addChecks(p.Unit, p.Episode, r)
	if p.Outcome.Failed != "" {
		return
	}
	g.played[cell]++
	g.turns = max(g.turns, r.Turns)
	for _, c := range r.Metrics {
		g.addCurve(p.Unit, cell, c)
	}
	var happened []string
	for _, e := range r.Events {
		note(&g.events, e.Name)
		note(&happened, e.Name)
	}
	g.fired[cell] = append(g.fired[cell], occurrence{p.Unit, happened})
	g.addActors(p.Unit, r)
	g.addPacts(r.Coalitions)
}

// note adds a word to a list, once.
func note(words *[]string, word string) {
	if !slices.Contains(*words, word) {
		*words = append(*words, word)
	}
}

// copied reports whether the measurements and findings of a turn are copies in all episodes of a fork. They are
// made in turn 2n of the first strand, while the next turn is decided.
func (g *exhibitor) copied(turn int) bool { return 2*turn < g.past }

func (g *exhibitor) addCurve(u world.Unit, cell int, c recordCurve) {
	if !slices.ContainsFunc(g.metrics, func(m recordCurve) bool { return m.Name == c.Name && m.Actor == c.Actor }) {
		m := c
		m.Values = nil
		g.metrics = append(g.metrics, m)
	}
	for turn, v := range c.Values {
		if v == nil || turn > script.MaxTurns {
			continue
		}
		for _, s := range c.Scores(*v) {
			at := point{s.Name, c.Actor, cell, turn}
			if g.points[at] == nil {
				g.points[at] = &world.Sample{Bounds: bounds(c.Range, isShare(c))}
			}
			if g.points[at].Episodes() == 0 || !g.copied(turn) {
				g.points[at].Add(u, s.Value)
			}
		}
	}
}

func (g *exhibitor) addActors(u world.Unit, r recordOutcome) {
	for _, a := range r.Actors {
		note(&g.actors, a.Actor)
		c := g.conduct[a.Actor]
		if c == nil {
			c = newConduct()
			g.conduct[a.Actor] = c
		}
		messages := 0
		for _, other := range r.Actors {
			if other.Actor == a.Actor {
				continue
			}
			k := [2]string{a.Actor, other.Actor}
			if g.wrote[k] == nil {
				g.wrote[k] = &world.Sample{Bounds: world.AtLeast0()}
			}
			g.wrote[k].Add(u, float64(a.Wrote[other.Actor]))
			messages += a.Wrote[other.Actor]
		}
		c.statements.Add(u, float64(a.Statements))
		c.messages.Add(u, float64(messages))
		c.decisions.Add(u, float64(a.Decisions))
		c.silences.Add(u, float64(a.Silences))
		c.added.Add(u, float64(a.GoalsAdded))
		c.dropped.Add(u, float64(a.GoalsDropped))
	}
}

func (g *exhibitor) addPacts(all []recordProposal) {
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

func newConduct() *conduct {
	count := world.Sample{Bounds: world.AtLeast0()}
	return &conduct{count, count, count, count, count, count}
}

// maxIssues is the maximum number of issues that a report lists.
const maxIssues = 25

func (g *exhibitor) addChecks(u world.Unit, episode int, r recordOutcome) {
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
