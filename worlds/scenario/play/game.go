// Package play plays scenarios.
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
package play

import (
	"fmt"
	"slices"
	"strings"

	"parley/world"
	"parley/worlds/scenario/form"
	"parley/worlds/scenario/record"
	"parley/worlds/scenario/script"
)

// game is one episode.
type game struct {
	*script.Script
	cast []actor
	// turns are what happened, for everybody to read; the first is the situation at the start.
	turns []turn
	// summary is of the turns up to summarized, which are no longer told in full.
	summary    string
	summarized int
	coming     assessment // with the summary that takes its place after the next turn
	// public is what everybody reads before a question, and silent the same without
	// statements. They are written once for each turn, since all questions share them.
	public, silent string
	// hidden is what the narrator keeps to itself, and untold what it failed to tell.
	hidden []string
	untold []string
	missed int // accounts that failed, one after the other
	// What came of the calls of the narrator, and of those for decisions.
	accounts, choices world.Unanswered

	luck   uint64
	fired  []bool // by event
	series []series
	issues []record.Issue
	warned map[string]string // metric to the worst threshold it passed
	events []record.Event
	// What was done, for the outcome.
	conduct   []record.Conduct // by actor
	proposals []record.Proposal
	checks    []record.Tally

	ended  string // why it is over
	failed string // why it has not come to an end of its own
}

// actor is an actor and what became of it.
type actor struct {
	script.Actor
	long, short []string // its goals now
	past        []memory // by turn, from turn 1
	// aside is a summary of what it said and was told in private before the window.
	aside string
}

// memory is what an actor alone knows of a turn.
type memory struct {
	decision  form.Decision
	exchanges []exchange // it took part in
	pacts     []pact
}

// turn is what everybody can read of a turn.
type turn struct {
	number       int
	statements   []saying
	pacts        []pact // with a joint statement
	state        string
	stale        bool // the narrator failed: the state is the one before
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
	decisions  []form.Decision // by actor
}

// New returns an episode of a script.
func New(s *script.Script) world.World {
	g := &game{Script: s, fired: make([]bool, len(s.Events)), warned: map[string]string{}, turns: []turn{{state: s.State}}}
	for _, a := range s.Actors {
		g.cast = append(g.cast, actor{Actor: a, long: a.Goals})
		g.conduct = append(g.conduct, record.Conduct{Actor: a.ShortName, Wrote: map[string]int{}})
	}
	for _, c := range s.Validation.Checks {
		g.checks = append(g.checks, record.Tally{Check: c.Name})
	}
	g.series = newSeries(s)
	g.refresh()
	return g
}

// now is the number of the last turn that was told.
func (g *game) now() int { return len(g.turns) - 1 }

// Play plays turn after turn. What a turn came to is measured while the next is decided;
// where that ends the scenario, what was decided meanwhile is dropped.
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
			// A fork even where nothing is asked: turn n of a scenario is always decided in
			// turn 2n-2 of its first strand, and told in the next, for whoever forks it there.
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
			t.Note("dropped", "", record.Dropped{Turn: g.now() + 1, Why: g.ended})
		default:
			g.tell(t, next)
		}
	}
	g.checkPlayed()
	if g.Validation.LastOnly && g.now() > 0 {
		g.learn(t, g.assess(t, g.checking(g.now())))
	}
	t.Note("end", "", record.Ended{Turn: g.now(), Why: g.ended})
	return g.outcome()
}

// end ends the scenario, once.
func (g *game) end(format string, args ...any) {
	if g.ended == "" {
		g.ended = fmt.Sprintf(format, args...)
	}
}

// fail ends a scenario that came to no end of its own.
func (g *game) fail(format string, args ...any) {
	if g.failed == "" {
		g.failed = fmt.Sprintf(format, args...)
		g.ended = g.failed
	}
}

// checkPlayed fails a scenario of which nothing was played: where nobody ever decided anything, or
// nothing was ever told, what is left to measure is the situation at the start.
func (g *game) checkPlayed() {
	switch {
	case g.now() == 0:
	case !slices.ContainsFunc(g.conduct, func(c record.Conduct) bool { return c.Decisions > 0 }):
		g.fail("%s", g.choices.Because("no actor ever decided anything"))
	case !slices.ContainsFunc(g.turns[1:], func(t turn) bool { return !t.stale }):
		g.fail("%s", g.accounts.Because("the narrator never wrote anything"))
	}
}

// note says what is played.
func (g *game) note(t *world.Table) {
	o := record.Opening{Name: g.Name, Author: g.Author, Tags: g.Tags, Turns: g.Turns, TurnDuration: g.TurnDuration, State: g.State}
	for _, a := range g.cast {
		o.Actors, o.Names = append(o.Actors, a.ShortName), append(o.Names, a.Name)
	}
	t.Note("scenario", "", o)
}

// act is what the actors do in the next turn: they talk, and then decide.
func (g *game) act(t *world.Table) moves {
	m := moves{turn: g.now() + 1}
	if talk := g.Talk; talk.Statements || len(g.cast) > 1 && (talk.Bilateral || talk.Coalitions) {
		g.talk(t, &m)
	}
	g.decide(t, &m)
	return m
}

// learn takes in what was measured and found, and ends the scenario where that does.
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

// refresh writes anew what everybody can read.
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

// holds says whether all conditions hold by what is known of the last turn.
func (g *game) holds(all []script.Condition) bool {
	return !slices.ContainsFunc(all, func(c script.Condition) bool { return !c.Holds(g.latest(c.Metric, c.Actor)) })
}
