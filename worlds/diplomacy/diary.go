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
	maxEntry   = 900
	maxSummary = 1800
	maxGoal    = 200
	maxGoals   = 6
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
		g.write(t, p, aboutStart, promptStart, g.forms.start, promptContext{})
		p.started = true
	}
	g.review(t, p)
	if g.Planning {
		p.plan = ""
		answer, ok := decodeAnswer[textAnswer](t.One(g.call(p, "plan", promptPlan, g.forms.text, promptContext{})))
		if !ok {
			p.stats.Failed["plan"]++
			return
		}
		p.plan = oneLine(answer.Text, maxEntry)
		t.Note(noteDiary, p.seat, diaryRecord{Phase: g.pos.Phase.String(), About: aboutPlan, Text: p.plan})
	}
}

// review asks a player to review the results of the last movement phase, unless it has.
func (g *game) review(t *world.Table, p *player) {
	if p.reviewDue {
		p.reviewDue = false
		g.write(t, p, aboutResults, promptReview, g.forms.diary, promptContext{messages: g.last.phase})
	}
}

// write asks for a diary entry and records it.
func (g *game) write(t *world.Table, p *player, about, template string, form *llm.Schema, m promptContext) {
	answer, ok := decodeAnswer[diaryAnswer](t.One(g.call(p, about, template, form, m)))
	if !ok {
		p.stats.Failed[about]++
		return
	}
	g.enter(t, p, about, answer)
}

// enter records an entry, the relations that changed and the goals.
func (g *game) enter(t *world.Table, p *player, about string, answer diaryAnswer) {
	year, phase := g.pos.Phase.Year, g.pos.Phase.String()
	if about == aboutResults {
		year, phase = g.last.year, g.last.phase
	}
	note := diaryRecord{Phase: phase, About: about, Text: oneLine(answer.Diary, maxEntry)}
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
	p.gaveRelations = true
	note.Relations = p.relations.record(p.power)
	t.Note(noteDiary, p.seat, note)
}

func readGoals(list []string) []string {
	var goals []string
	for _, text := range list {
		if text = oneLine(text, maxGoal); text != "" && len(goals) < maxGoals {
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
	m := promptContext{entries: strings.Join(entryLines(old), "\n")}
	ask := llm.Request{Messages: []llm.Message{llm.User(p.set.fill(promptYears, g.values(snapshot, m)))}, Schema: g.forms.text}
	answer, ok := decodeAnswer[textAnswer](t.One(world.Call{Seat: p.seat, Label: "years", Ask: ask}))
	account = oneLine(answer.Text, maxSummary)
	if !ok || account == "" {
		p.stats.Failed["years"]++ // the next spring tries again
		return "", 0
	}
	t.Note(noteDiary, p.seat, diaryRecord{Phase: g.pos.Phase.String(), About: aboutYears, Text: account})
	return account, len(old)
}

// relation is how a power sees another, from enemy to ally.
type relation int

const (
	enemy relation = iota - 2
	unfriendly
	neutral
	friendly
	ally
)

// relationLabels lists the relations, from enemy to ally.
func relationLabels() []string { return []string{"enemy", "unfriendly", "neutral", "friendly", "ally"} }

func (r relation) String() string { return relationLabels()[min(max(r, enemy), ally)-enemy] }

// parseRelation reads a label in any case.
func parseRelation(label string) (relation, bool) {
	for i, l := range relationLabels() {
		if strings.EqualFold(strings.TrimSpace(label), l) {
			return relation(i) + enemy, true
		}
	}
	return neutral, false
}

// relations are those of one power to the others.
type relations [rules.Turkey + 1]relation

// text lists the relations to powers other than w that are still there.
func (r *relations) text(w rules.Power, present rules.Set[rules.Power]) string {
	var parts []string
	for _, other := range rules.Powers() {
		if other != w && present.Has(other) {
			parts = append(parts, other.Name()+" "+r[other].String())
		}
	}
	return strings.Join(parts, ", ")
}

// record writes them by name.
func (r *relations) record(w rules.Power) map[string]string {
	m := map[string]string{}
	for _, other := range rules.Powers() {
		if other != w {
			m[other.String()] = r[other].String()
		}
	}
	return m
}
