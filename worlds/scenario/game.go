// Part play plays scenarios.
//
// A turn has three parts: what actors say to each other (public statements, exchanges between two,
// coalitions), their decisions, and the narrator's account of what follows. All actors
// speak and decide at the same moment: no actor sees what another decides in the same turn.
// A turn is measured and checked while the next one is being decided, so
// that measuring takes no extra time.
//
// An actor reads only what is public, what it alone knows, and
// what was said to it. A call that fails is silence, never an
// action, a value or a finding. An unknown value stays unknown and is never 0. Chance
// depends only on the deal.

package scenario

import (
	"fmt"
	"slices"
	"strings"

	"parley/world"
	"parley/worlds/scenario/script"
)

// game is one episode.
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
	hidden []string
	untold []string
	missed int // accounts that failed, one after the other
	// The failures of the narrator's calls, and of calls for decisions.
	accounts, choices world.Unanswered

	luck   uint64
	fired  []bool // by event
	series []series
	issues []Issue
	warned map[string]string // metric to the worst threshold it passed
	events []recordEvent
	// What was done, for the outcome.
	conduct   []recordConduct // by actor
	proposals []recordProposal
	checks    []recordTally

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

// newPlay returns an episode of a script.
func newPlay(s *script.Script) world.World {
	g := &game{Script: s, fired: make([]bool, len(s.Events)), warned: map[string]string{}, turns: []turn{{state: s.State}}}
	for _, a := range s.Actors {
		g.cast = append(g.cast, actor{Actor: a, long: a.Goals})
		g.conduct = append(g.conduct, recordConduct{Actor: a.ShortName, Wrote: map[string]int{}})
	}
	for _, c := range s.Validation.Checks {
		g.checks = append(g.checks, recordTally{Check: c.Name})
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
	g.note(t)
	g.measureTexts(t)
	for g.ended == "" {
		var next moves
		var found assessment
		last := g.now() == g.Turns
		asks := g.assessing(last)
		if last {
			found = g.assess(t, asks)
		} else {
			t.Phase(fmt.Sprintf("turn %d", g.now()+1))
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
		g.learn(t, found)
		switch {
		case last:
			g.end("its last turn was played")
		case g.ended != "":
			t.Note("dropped", "", recordDropped{Turn: g.now() + 1, Why: g.ended})
		default:
			g.tell(t, next)
		}
	}
	g.checkPlayed()
	if g.Validation.LastOnly && g.now() > 0 {
		g.learn(t, g.assess(t, g.checking(g.now())))
	}
	t.Note("end", "", recordEnded{Turn: g.now(), Why: g.ended})
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
	case !slices.ContainsFunc(g.conduct, func(c recordConduct) bool { return c.Decisions > 0 }):
		g.fail("%s", g.choices.Because("no actor ever decided anything"))
	case !slices.ContainsFunc(g.turns[1:], func(t turn) bool { return !t.stale }):
		g.fail("%s", g.accounts.Because("the narrator never wrote anything"))
	}
}

// note notes the start of the scenario.
func (g *game) note(t *world.Table) {
	o := Opening{Name: g.Name, Author: g.Author, Tags: g.Tags, Turns: g.Turns, TurnDuration: g.TurnDuration, State: g.State}
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

// learn records what was measured and found, and ends the scenario if its condition is met.
func (g *game) learn(t *world.Table, a assessment) {
	for _, v := range a.values {
		g.record(t, v)
	}
	for _, f := range a.findings {
		g.found(t, f)
	}
	g.coming = a
	g.close()
}

// refresh rewrites what everybody can read.
func (g *game) refresh() {
	g.public = g.publish(true)
	g.silent = ""
	if slices.ContainsFunc(g.cast, func(a actor) bool { return a.Deaf }) {
		g.silent = g.publish(false)
	}
}

// close ends the scenario if its condition is met.
func (g *game) close() {
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
