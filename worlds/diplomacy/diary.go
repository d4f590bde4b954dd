package diplomacy

import (
	"fmt"
	"strings"

	"parley/llm"
	"parley/world"
	"parley/worlds/diplomacy/rules"
)

// The maximum lengths of a power's own texts, in characters. Longer texts are cut.
const (
	maxEntry = 900
	maxYear  = 1800
	maxGoal  = 200
	maxGoals = 6
)

// diary is what a power remembers: a summary of earlier years, then its later entries.
type diary struct {
	years   string
	entries []entry
}

type entry struct {
	year  int
	phase string
	text  string
}

// text is the whole diary, a line for each entry.
func (d *diary) text() string {
	var lines []string
	if d.years != "" {
		lines = append(lines, "[earlier] "+d.years)
	}
	return strings.Join(append(lines, entryLines(d.entries)...), "\n")
}

func entryLines(entries []entry) []string {
	lines := make([]string, len(entries))
	for i, e := range entries {
		lines[i] = fmt.Sprintf("[%s] %s", e.phase, e.text)
	}
	return lines
}

// before returns the entries of years before a given one, which are the first ones.
func (d *diary) before(year int) []entry {
	n := 0
	for n < len(d.entries) && d.entries[n].year < year {
		n++
	}
	return d.entries[:n:n]
}

// prepare asks a player for what it writes before it speaks or orders: its first goals, its
// review of the last results, and a plan.
func (g *game) prepare(t *world.Table, p *player) {
	if p.bot {
		return
	}
	if !p.started {
		g.write(t, p, AboutStart, promptStart, g.forms.start, moment{})
		p.started = true
	}
	g.review(t, p)
	if g.Planning {
		p.plan = ""
		answer, ok := decode[textAnswer](t.One(g.call(p, "plan", promptPlan, g.forms.text, moment{})))
		if !ok {
			p.stats.Failed["plan"]++
			return
		}
		p.plan = pressLine(answer.Text, maxEntry)
		t.Note(noteDiary, p.seat, Entry{Phase: g.pos.Phase.String(), About: aboutPlan, Text: p.plan})
	}
}

// review asks a player to review the results of the last movement phase, unless it has.
func (g *game) review(t *world.Table, p *player) {
	if p.behind {
		p.behind = false
		g.write(t, p, AboutResults, promptReview, g.forms.diary, moment{messages: g.last.phase})
	}
}

// write asks for a diary entry and records it.
func (g *game) write(t *world.Table, p *player, about, template string, form *llm.Schema, m moment) {
	answer, ok := decode[diaryAnswer](t.One(g.call(p, about, template, form, m)))
	if !ok {
		p.stats.Failed[about]++
		return
	}
	g.enter(t, p, about, answer)
}

// enter records an entry, the relations that changed and the goals.
func (g *game) enter(t *world.Table, p *player, about string, answer diaryAnswer) {
	year, phase := g.pos.Phase.Year, g.pos.Phase.String()
	if about == AboutResults {
		year, phase = g.last.year, g.last.phase
	}
	note := Entry{Phase: phase, About: about, Text: pressLine(answer.Diary, maxEntry)}
	if note.Text != "" {
		p.diary.entries = append(p.diary.entries, entry{year: year, phase: phase, text: note.Text})
	}
	if goals := readGoals(answer.Goals); len(goals) > 0 {
		p.goals, note.Goals = goals, goals
	}
	for _, r := range answer.Relations {
		w, ok := rules.ParsePower(r.Power)
		label, ok2 := parseRelation(r.Relation)
		if !ok || !ok2 || w == p.power {
			p.stats.Refused["relation: unknown"]++
			continue
		}
		p.relations[w] = label
	}
	p.viewed = true
	note.Relations = p.relations.record(p.power)
	t.Note(noteDiary, p.seat, note)
}

func readGoals(list []string) []string {
	var goals []string
	for _, text := range list {
		if text = pressLine(text, maxGoal); text != "" && len(goals) < maxGoals {
			goals = append(goals, text)
		}
	}
	return goals
}

// shorten summarizes the entries of earlier years, each year once, so that prompts do not grow
// with the game. It returns the summary and how many entries are now in it. The caller changes
// the diary when all strands are done. Prompts are about snapshot.
func (g *game) shorten(t *world.Table, p, snapshot *player) (account string, n int) {
	old := snapshot.diary.before(g.pos.Phase.Year - 1)
	m := moment{entries: strings.Join(entryLines(old), "\n")}
	ask := llm.Request{Messages: []llm.Message{llm.User(p.set.Fill(promptYears, g.values(snapshot, m)))}, Schema: g.forms.text}
	answer, ok := decode[textAnswer](t.One(world.Call{Seat: p.seat, Label: "years", Ask: ask}))
	account = pressLine(answer.Text, maxYear)
	if !ok || account == "" {
		p.stats.Failed["years"]++ // the next spring tries again
		return "", 0
	}
	t.Note(noteDiary, p.seat, Entry{Phase: g.pos.Phase.String(), About: AboutYears, Text: account})
	return account, len(old)
}
