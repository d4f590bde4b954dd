package scenario

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"parley/world"
	"parley/worlds/scenario/script"
)

// game is one episode.
//
// A turn has three parts: what actors say to each other (public statements, exchanges between two,
// coalitions), their decisions, and the narrator's account of what follows. All actors speak and
// decide at the same moment: no actor sees what another decides in the same turn. A turn is
// measured and checked while the next one is being decided, so that measuring takes no extra time.
//
// An actor reads only what is public, what it alone knows, and what was said to it. A call that
// fails is silence, never an action, a value or a finding. An unknown value stays unknown and is
// never 0. Chance depends only on the deal.
type game struct {
	*script.Script
	cast []actor
	// turns is the public account of each turn; the first is the situation at the start.
	turns []turn
	// summary covers the turns up to summarized, which are no longer shown in full.
	summary    string
	summarized int
	coming     assessment // has the summary that replaces it after the next turn
	// public is the text that everybody reads before a question, and silent the same without
	// statements. They are written once for each turn, because all questions share them.
	public, silent string
	// hidden is what the narrator keeps to itself, and untold what it failed to tell.
	hidden      []string
	notNarrated []string
	missed      int // accounts that failed, one after the other
	// The failures of the narrator's calls, and of calls for decisions.
	accounts, choices world.Unanswered

	luck   uint64
	fired  []bool // by event
	series []series
	issues []Issue
	warned map[string]string // metric to the worst threshold it passed
	events []eventNote
	// What was done, for the outcome.
	conduct   []actorTally // by actor
	proposals []proposedCoalition
	checks    []checkTally

	ended  string // why it is over
	failed string // why it failed
}

// actor is an actor with its goals and memory.
type actor struct {
	script.Actor
	long, short []string // its goals now
	past        []memory // by turn, from turn 1
	// aside is a summary of its private talk before the window.
	aside string
}

// memory is what an actor alone knows of a turn.
type memory struct {
	decision  script.Decision
	exchanges []exchange // that it took part in
	pacts     []pact
}

// turn is the public account of a turn.
type turn struct {
	number       int
	statements   []saying
	pacts        []pact // with a joint statement
	state        string
	stale        bool // the narrator failed, so the state is that of the turn before
	changes      []string
	consequences []string
}

// saying is what an actor said.
type saying struct {
	who  int
	text string
}

// moves is what the actors said and decided in a turn.
type moves struct {
	turn       int
	statements []saying
	exchanges  []exchange
	pacts      []pact
	decisions  []script.Decision // by actor
}

// newGame returns an episode of a script.
func newGame(s *script.Script) world.World {
	g := &game{Script: s, fired: make([]bool, len(s.Events)), warned: map[string]string{}, turns: []turn{{state: s.State}}}
	for _, a := range s.Actors {
		g.cast = append(g.cast, actor{Actor: a, long: a.Goals})
		g.conduct = append(g.conduct, actorTally{Actor: a.ShortName, Wrote: map[string]int{}})
	}
	for _, c := range s.Validation.Checks {
		g.checks = append(g.checks, checkTally{Check: c.Name})
	}
	g.series = newSeries(s)
	g.refresh()
	return g
}

// now returns the number of the last turn that was told.
func (g *game) now() int { return len(g.turns) - 1 }

// Play plays all turns. It measures a turn while the actors decide the next one. If that
// ends the scenario, it drops these decisions.
func (g *game) Play(t *world.Table) world.Outcome {
	g.luck = t.Rand().Uint64()
	g.noteStart(t)
	g.measureTexts(t)
	for g.ended == "" {
		var next moves
		var found assessment
		last := g.now() == g.Turns
		asks := g.assessing(last)
		if last {
			found = g.assess(t, asks)
		} else {
			t.Phase(phaseOf(g.now() + 1))
			// Fork even if there are no questions: then turn n of a scenario is always decided in
			// turn 2n-2 of the first strand, and told in the next, which users of parley fork rely on.
			t.Fork(1+min(1, len(asks)), func(i int, t *world.Table) {
				if i == 0 {
					next = g.act(t)
				} else {
					found = g.assess(t, asks)
				}
			})
		}
		g.takeAssessment(t, found)
		switch {
		case last:
			g.end("its last turn was played")
		case g.ended != "":
			t.Note("dropped", "", droppedNote{Turn: g.now() + 1, Why: g.ended})
		default:
			g.narrate(t, next)
		}
	}
	g.checkPlayed()
	if g.Validation.LastOnly && g.now() > 0 {
		g.takeAssessment(t, g.assess(t, g.checking(g.now())))
	}
	t.Note("end", "", endNote{Turn: g.now(), Why: g.ended})
	return g.outcome()
}

// end ends the scenario, once.
func (g *game) end(format string, args ...any) {
	if g.ended == "" {
		g.ended = fmt.Sprintf(format, args...)
	}
}

// fail ends the scenario as failed, once.
func (g *game) fail(format string, args ...any) {
	if g.failed == "" {
		g.failed = fmt.Sprintf(format, args...)
		g.ended = g.failed
	}
}

// checkPlayed fails a scenario in which no actor ever decided anything, or
// the narrator never told anything: only the situation at the start could be measured.
func (g *game) checkPlayed() {
	switch {
	case g.now() == 0:
	case !slices.ContainsFunc(g.conduct, func(c actorTally) bool { return c.Decisions > 0 }):
		g.fail("%s", g.choices.Because("no actor ever decided anything"))
	case !slices.ContainsFunc(g.turns[1:], func(t turn) bool { return !t.stale }):
		g.fail("%s", g.accounts.Because("the narrator never wrote anything"))
	}
}

// noteStart notes the start of the scenario.
func (g *game) noteStart(t *world.Table) {
	o := openingNote{Name: g.Name, Author: g.Author, Tags: g.Tags, Turns: g.Turns, TurnDuration: g.TurnDuration, State: g.State}
	for _, a := range g.cast {
		o.Actors, o.Names = append(o.Actors, a.ShortName), append(o.Names, a.Name)
	}
	t.Note("scenario", "", o)
}

// act lets the actors talk and then decide in the next turn.
func (g *game) act(t *world.Table) moves {
	m := moves{turn: g.now() + 1}
	if talk := g.Talk; talk.Statements || len(g.cast) > 1 && (talk.Bilateral || talk.Coalitions) {
		g.talk(t, &m)
	}
	g.decide(t, &m)
	return m
}

// takeAssessment records what was measured and found, and ends the scenario if its condition is met.
func (g *game) takeAssessment(t *world.Table, a assessment) {
	for _, v := range a.values {
		g.record(t, v)
	}
	for _, f := range a.findings {
		g.noteFinding(t, f)
	}
	g.coming = a
	g.endIfMet()
}

// refresh rewrites what everybody can read.
func (g *game) refresh() {
	g.public = g.publish(true)
	g.silent = ""
	if slices.ContainsFunc(g.cast, func(a actor) bool { return a.Deaf }) {
		g.silent = g.publish(false)
	}
}

// endIfMet ends the scenario if its condition is met.
func (g *game) endIfMet() {
	if len(g.End) == 0 || g.now() == 0 || !g.holds(g.End) {
		return
	}
	texts := make([]string, len(g.End))
	for i, c := range g.End {
		texts[i] = c.String()
	}
	g.end("its condition is met: %s", strings.Join(texts, " and "))
}

// holds reports whether all conditions hold after the last turn.
func (g *game) holds(all []script.Condition) bool {
	return !slices.ContainsFunc(all, func(c script.Condition) bool { return !c.Holds(g.latest(c.Metric, c.Actor)) })
}

// decide asks all actors at the same moment. An actor that fails to answer does nothing.
func (g *game) decide(t *world.Table, m *moves) {
	calls := make([]world.Call, len(g.cast))
	for i := range g.cast {
		calls[i] = g.decisionCall(m, i)
	}
	for _, r := range t.Ask(calls...) {
		m.decisions = append(m.decisions, script.ReadDecision(r))
	}
}

// noteDecision notes what an actor decided, and how its goals changed.
func (g *game) noteDecision(t *world.Table, turn, who int, d script.Decision) {
	a, did := &g.cast[who], &g.conduct[who]
	g.choices.Add(world.Reply{Failed: d.Failed})
	if d.Action == "" {
		t.Note("silence", a.ShortName, silenceNote{Turn: turn, Failed: d.Failed})
		did.Silences++
	} else {
		note := decisionNote{
			Turn: turn, LongTerm: d.LongTerm, ShortTerm: d.ShortTerm, Reasoning: d.Reasoning, Action: d.Action, Reflection: d.Reflection,
			Added: without(d.LongTerm, a.long), Dropped: without(a.long, d.LongTerm),
		}
		t.Note("decision", a.ShortName, note)
		did.Decisions++
		did.GoalsAdded += len(note.Added)
		did.GoalsDropped += len(note.Dropped)
	}
	if len(d.LongTerm) > 0 {
		a.long = d.LongTerm
	}
	if len(d.ShortTerm) > 0 {
		a.short = d.ShortTerm
	}
}

// without returns the elements of all that are not in some, or nothing if either is empty.
func without(all, some []string) []string {
	if len(all) == 0 || len(some) == 0 {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(all), func(s string) bool { return slices.Contains(some, s) })
}

// remember adds what each actor alone knows of a turn to its memory.
func (g *game) remember(m moves) {
	for i := range g.cast {
		mem := memory{decision: m.decisions[i]}
		for _, x := range m.exchanges {
			if slices.Contains(x.between[:], i) {
				mem.exchanges = append(mem.exchanges, x)
			}
		}
		for _, p := range m.pacts {
			if slices.Contains(p.members, i) {
				mem.pacts = append(mem.pacts, p)
			}
		}
		g.cast[i].past = append(g.cast[i].past, mem)
	}
}

// maxMissed is the number of consecutive failures of the narrator that end the scenario.
const maxMissed = 2

// narrate asks the narrator for what follows from the decisions and events of a turn. If it fails, the
// situation stays unchanged, and the narrator tells this turn together with the next.
func (g *game) narrate(t *world.Table, m moves) {
	g.noteTalk(t, m)
	for i, d := range m.decisions {
		g.noteDecision(t, m.turn, i, d)
	}
	events := g.eventsOf(m.turn)
	for _, e := range events {
		t.Note("event", "", e)
	}
	swan := g.hasBlackSwan(m.turn)
	reply := t.One(g.updateCall(m, events, swan))
	u := script.ReadUpdate(reply)
	g.accounts.Add(reply)
	if swan && u.BlackSwan != "" {
		e := eventNote{Turn: m.turn, Name: "black swan", Type: "black_swan", Description: u.BlackSwan}
		events = append(events, e)
		t.Note("event", "", e)
	}
	g.remember(m)
	now := turn{number: m.turn, statements: m.statements, state: u.State, changes: u.Changes, consequences: u.Consequences}
	for _, p := range m.pacts {
		if p.statement != "" {
			now.pacts = append(now.pacts, p)
		}
	}
	g.events = append(g.events, events...)
	if u.State == "" {
		g.keepNotNarrated(m, events)
		now.state, now.stale = g.turns[len(g.turns)-1].state, true
		g.missed++
	} else {
		g.hidden, g.notNarrated, g.missed = u.Hidden, nil, 0
	}
	g.turns = append(g.turns, now)
	if a := g.coming; a.summarized > 0 {
		g.summary, g.summarized = a.summary, a.summarized
		t.Note("summary", "", summaryNote{Turns: a.summarized, Text: a.summary, Failed: a.summaryFailed})
		for _, one := range a.asides {
			g.cast[one.who].aside = one.text
			t.Note("summary", g.cast[one.who].ShortName, summaryNote{Turns: a.summarized, Text: one.text, Failed: one.failed})
		}
	}
	g.refresh()
	t.Note("world", "", worldNote{
		Turn: m.turn, State: now.state, Changes: now.changes, Consequences: now.consequences, Hidden: u.Hidden,
		Stale: u.State == "", Failed: reply.Failed,
	})
	g.measureTexts(t)
	g.endIfMet()
	if g.missed >= maxMissed {
		g.fail("%s; that was in %d turns, one after the other", g.accounts.Because("the narrator wrote nothing"), g.missed)
	}
}

// keepNotNarrated keeps what the narrator failed to tell.
func (g *game) keepNotNarrated(m moves, events []eventNote) {
	for i, d := range m.decisions {
		if d.Action != "" {
			g.notNarrated = append(g.notNarrated, fmt.Sprintf("In turn %d, %s: %s", m.turn, g.cast[i].Name, d.Action))
		}
	}
	for _, e := range events {
		g.notNarrated = append(g.notNarrated, fmt.Sprintf("In turn %d, from outside: %s: %s", m.turn, e.Name, e.Description))
	}
}

// actions returns the actions of a turn.
func (g *game) actions(m moves) []saying {
	var all []saying
	for i, d := range m.decisions {
		if d.Action != "" {
			all = append(all, saying{i, d.Action})
		}
	}
	return slices.Clip(all)
}

// eventsOf returns the events of a turn, in the order of the script, and marks those
// that happen once. Conditions use the metrics that are known when the turn is told.
func (g *game) eventsOf(turn int) []eventNote {
	var all []eventNote
	for i, e := range g.Events {
		if g.fired[i] && e.Once || !g.due(e, turn) {
			continue
		}
		g.fired[i] = true
		all = append(all, eventNote{Turn: turn, Name: e.Name, Type: e.Type, Description: e.Description})
	}
	return all
}

// due reports whether an event happens in a turn.
func (g *game) due(e script.Event, turn int) bool {
	if len(e.Range) == 2 && (turn < e.Range[0] || turn > e.Range[1]) {
		return false
	}
	if len(e.Conditions) > 0 && !g.holds(e.Conditions) {
		return false
	}
	if p := e.Probability; p != nil && g.chance(e.Name, turn) >= *p {
		return false
	}
	switch e.Type {
	case script.EventTrend:
		return (turn-e.Range[0])%e.Frequency == 0
	case script.EventScheduled:
		return slices.Contains(e.Turns, turn)
	}
	return true
}

// hasBlackSwan reports whether an unforeseen event happens in a turn.
func (g *game) hasBlackSwan(turn int) bool {
	return g.BlackSwan > 0 && g.chance("", turn) < g.BlackSwan
}

// chance returns a number from 0 to 1 for one event in one turn. It depends only on the deal, the
// event's name and the turn: with the same deal an event has the same luck,
// whatever else varies.
func (g *game) chance(event string, turn int) float64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(event + "\x00" + strconv.Itoa(turn)))
	return rand.New(rand.NewPCG(g.luck, h.Sum64())).Float64()
}

// outcome scores a scenario: each metric after the last turn if it is known, or each of its categories, the number of
// turns, and the number of issues if every check is known. A failed scenario has no scores.
func (g *game) outcome() world.Outcome {
	rec := outcomeData{
		Name: g.Name, Turns: g.now(), Ended: g.ended, State: g.turns[g.now()].state, Events: g.events, Goals: map[string][]string{},
		Actors: g.conduct, Coalitions: g.proposals, Checks: g.checks,
	}
	if g.Validation.Summary {
		rec.Issues = g.issues
	}
	rec.NotNarrated, rec.Unanswered = g.unknowns()
	for _, a := range g.cast {
		rec.Goals[a.ShortName] = a.long
	}
	o := world.Outcome{Failed: g.failed}
	for i := range g.series {
		c := g.curve(&g.series[i])
		rec.Metrics = append(rec.Metrics, c)
		if last := c.Values[g.now()]; last != nil {
			o.Scores = append(o.Scores, c.scores(*last)...)
		}
	}
	o.Scores = append(o.Scores, world.Score{Name: "turns", Value: float64(g.now())})
	if g.checked() {
		o.Scores = append(o.Scores, world.Score{Name: "issues", Value: float64(len(g.issues))})
	}
	if o.Data = rec; g.failed != "" {
		o.Scores = nil
	}
	return o
}

// checked reports whether checks were made and all of them have a result. Otherwise the number of issues is unknown.
func (g *game) checked() bool {
	made, unknown := 0, 0
	for _, c := range g.checks {
		made += c.Made
		unknown += c.Unknown
	}
	return made > 0 && unknown == 0
}

// unknowns counts turns that the narrator failed to tell, and questions for metrics without an answer.
func (g *game) unknowns() (untold, unanswered int) {
	for _, t := range g.turns {
		if t.stale {
			untold++
		}
	}
	for _, s := range g.series {
		for _, v := range s.values {
			if v.Unknown == script.NoAnswer {
				unanswered++
			}
		}
	}
	return untold, unanswered
}

// curve returns a metric over the turns that were played.
func (g *game) curve(s *series) metricCurve {
	m := s.metric
	c := metricCurve{
		Name: m.Name, Unit: m.Unit, Values: make([]*float64, len(g.turns)), Range: m.Range, Categories: m.Categories,
		Boolean: m.Type == script.Boolean, Warning: m.Warning, Critical: m.Critical,
	}
	if s.actor >= 0 {
		c.Actor = g.cast[s.actor].ShortName
	}
	for _, v := range s.values {
		if v.Value.Known {
			c.Values[v.turn] = &v.Value.Number
		}
	}
	return c
}
