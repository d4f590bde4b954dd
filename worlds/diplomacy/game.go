package diplomacy

import (
	"fmt"
	"slices"
	"strings"

	"parley/world"
	"parley/worlds/diplomacy/drawing"
	"parley/worlds/diplomacy/rules"
)

// game is one episode.
type game struct {
	Params
	rules   *rules.Rules
	forms   *forms
	judge   *promptSet
	until   rules.Phase // the last phase that is played
	players []*player   // all seven, in their order

	pos   rules.Position
	brief *briefing // of pos
	mail  mailbox
	last  lastMovement
	tally *tally
	end   *endRecord // nil until the game is over

	ordersAsked world.Unanswered
}

// lastMovement is the last movement phase, for prompts.
type lastMovement struct {
	year  int
	phase string
	text  string // its orders and their results
	moves []drawing.Order
}

// player is a power and its state. Each strand writes only to its own player.
type player struct {
	power rules.Power
	seat  string
	bot   bool
	// person is whether it is a person, who gets choices and a picture with a question for orders.
	person bool
	set    *promptSet

	shared        string // the beginning of all prompts of the phase
	options       string // what its units can do in the phase
	goals         []string
	relations     relations
	diary         diary
	plan          string
	returned      string // messages of the last round that were not delivered
	changes       string // what it won and lost in the last movement phase
	started       bool
	reviewDue     bool // it has not reviewed the last movement phase yet
	silent        bool // it wrote nothing when it was last asked
	wroteMessages bool // a question for messages was answered
	gaveRelations bool // a question about relations was answered

	orders []given
	reason string
	vote   string

	stats *powerStats
}

func (d *definition) newGame(p *Params, lineup world.Lineup) (*game, error) {
	sets, err := d.promptSets(p)
	if err != nil {
		return nil, err
	}
	start, err := d.startPosition(p)
	if err != nil {
		return nil, err
	}
	g := &game{Params: *p, rules: d.rules, forms: newForms(), judge: sets[rules.None], until: rules.Phase{Year: p.MaxYear, Season: rules.Winter, Step: rules.Adjustments}, pos: start}
	if p.EndPhase != "" {
		if g.until, err = rules.ParsePhase(p.EndPhase); err != nil {
			return nil, err
		}
	}
	for _, w := range rules.Powers() {
		g.players = append(g.players, &player{
			power: w, seat: w.String(), bot: lineup[w.String()].Bot != "", person: lineup[w.String()].Human(), set: sets[w], started: !p.Diary,
			stats: newPowerStats(),
		})
		if !start.Alive(w) {
			g.players[w-1].stats.Out = start.Phase.Year - 1
		}
	}
	return g, nil
}

// Play plays from phase to phase until the game is over.
func (g *game) Play(t *world.Table) world.Outcome {
	g.tally = newTally(g)
	for g.end == nil {
		t.Phase(g.pos.Phase.String())
		g.publish()
		if g.pos.Phase.Step == rules.Movement {
			if g.Rounds > 0 {
				g.talk(t)
			}
			g.decide(t)
		} else {
			g.settle(t)
		}
		g.resolve(t)
	}
	t.Note(noteEnd, "", g.end)
	return g.outcome()
}

// publish fills in the beginning of all prompts of the phase. The standard templates make it the
// same for all powers, but custom templates may use what only one power knows.
func (g *game) publish() {
	pos := g.pos // a copy that does not change
	g.brief = newBriefing(g.rules, &pos)
	for _, p := range g.writers() {
		p.options = ""
		if len(g.brief.choicesOf(p.power)) > 0 {
			p.options = g.brief.options(p.power, rules.Set[rules.Province]{})
		}
		value := g.values(p, promptContext{})
		p.shared = p.set.fill(promptRules, value) + "\n\n" + p.set.fill(promptBoard, value)
	}
}

// alive lists the players with a unit or a centre.
func (g *game) alive() []*player {
	var list []*player
	for _, p := range g.players {
		if g.pos.Alive(p.power) {
			list = append(list, p)
		}
	}
	return list
}

// writers lists the players that write messages: all except bots.
func (g *game) writers() []*player {
	var list []*player
	for _, p := range g.alive() {
		if !p.bot {
			list = append(list, p)
		}
	}
	return list
}

// present returns the powers that are still in the game.
func (g *game) present() rules.Set[rules.Power] {
	var set rules.Set[rules.Power]
	for _, p := range g.alive() {
		set.Add(p.power)
	}
	return set
}

// phaseRank is a number that orders phases.
func phaseRank(p rules.Phase) int { return 9*p.Year + 3*int(p.Season) + int(p.Step) }

// movesAgain reports whether another movement phase can follow the current one.
func (g *game) movesAgain() bool {
	next := rules.Phase{Year: g.pos.Phase.Year, Season: rules.Fall}
	if g.pos.Phase.Season != rules.Spring {
		next = rules.Phase{Year: g.pos.Phase.Year + 1}
	}
	return phaseRank(next) <= phaseRank(g.until)
}

// resolve carries out the orders of a phase, records their results, and moves to the next
// phase or ends the game.
func (g *game) resolve(t *world.Table) {
	if g.endByVote() {
		t.Note(notePhase, "", g.phaseNote(&rules.Outcome{})) // it keeps the messages of the phase
		return
	}
	var orders rules.Orders
	for _, p := range g.players {
		for _, o := range p.orders {
			orders[p.power] = append(orders[p.power], o.order)
		}
	}
	out := g.rules.Adjudicate(&g.pos, &orders)
	note := g.phaseNote(&out)
	t.Note(notePhase, "", note)
	g.tally.phase(&out)
	moved := g.pos.Phase.Step == rules.Movement
	again := g.movesAgain()
	if moved {
		g.last = lastMovement{year: g.pos.Phase.Year, phase: g.pos.Phase.String(), text: g.resultLines(note), moves: note.moves(g.rules.Board)}
	} else if lines := g.resultLines(note); lines != "" {
		g.last.text += fmt.Sprintf("\n%s:\n%s", g.pos.Phase, lines)
	}
	before := g.pos
	g.pos = g.rules.Advance(&out.After)
	for _, p := range g.players {
		p.orders, p.reason, p.vote = nil, "", ""
		if moved {
			p.reviewDue = g.Diary && !p.bot && again && g.pos.Alive(p.power)
			p.changes = changes(g.rules, p.power, &before, &out.After)
		}
	}
	g.tally.advance(&before)
	g.endIfOver()
}

// endIfOver ends the game if it is over.
func (g *game) endIfOver() {
	alive := g.alive()
	switch winner := g.pos.Winner(); {
	case winner != rules.None && g.Scoring != scoreWelfare:
		g.endGame(endSolo, winner)
	case len(alive) == 1:
		g.endGame(endLastPower, alive[0].power)
	case len(alive) == 0: // the game started from an unusual position
		g.endGame(endLastPower)
	case phaseRank(g.pos.Phase) > phaseRank(g.until) && g.EndPhase != "":
		g.endGame(endPhase)
	case phaseRank(g.pos.Phase) > phaseRank(g.until):
		g.endGame(endYear)
	}
}

// endGame records how the game ended.
func (g *game) endGame(reason string, winners ...rules.Power) {
	g.end = &endRecord{State: g.rules.State(&g.pos), Reason: reason}
	for _, w := range winners {
		g.end.Winners = append(g.end.Winners, w.String())
	}
	g.tally.ended(reason, winners)
}

// phaseNote returns the note of a phase.
func (g *game) phaseNote(out *rules.Outcome) *phaseRecord {
	note := &phaseRecord{State: g.rules.State(&g.pos), Orders: map[string][]orderRecord{}}
	for _, u := range out.Removed {
		note.Removed = append(note.Removed, g.rules.Board.UnitText(u))
	}
	for _, p := range g.players {
		for i, r := range out.Results[p.power] {
			note.Orders[p.seat] = append(note.Orders[p.seat], orderRecord{
				Order: r.Order.Text(g.rules.Board), Results: r.Codes(), Missing: p.orders[i].missing,
			})
		}
		if p.reason != "" {
			note.Reasons = setKey(note.Reasons, p.seat, p.reason)
		}
		if p.vote != "" && g.pos.Phase.Step == rules.Movement {
			note.Votes = setKey(note.Votes, p.seat, p.vote)
		}
		if g.pos.Phase.Step == rules.Movement && g.Diary && !p.bot && g.pos.Alive(p.power) {
			note.Relations = setKey(note.Relations, p.seat, p.relations.record(p.power))
			note.Goals = setKey(note.Goals, p.seat, p.goals)
		}
	}
	return note
}

// setKey sets a key of a map, which it makes if needed.
func setKey[T any](m map[string]T, key string, value T) map[string]T {
	if m == nil {
		m = map[string]T{}
	}
	m[key] = value
	return m
}

// resultLines lists the orders of a phase and their failures, a line for each power.
func (g *game) resultLines(note *phaseRecord) string {
	var lines []string
	for _, p := range g.players {
		if orders := note.orderTexts(p.seat); len(orders) > 0 {
			lines = append(lines, p.power.Name()+": "+strings.Join(orders, ", "))
		}
	}
	return strings.Join(lines, "\n")
}

// changes describes what a power won and lost in a movement phase. Centres change their owner
// after fall, once no unit has to retreat.
func changes(r *rules.Rules, w rules.Power, before, after *rules.Position) string {
	var won, lost, beaten []string
	for c := range r.Board.SupplyCentres().All() {
		code := r.Board.Code(rules.Location(c))
		switch {
		case before.Owners[c] != w && after.Owners[c] == w:
			won = append(won, code)
		case before.Owners[c] == w && after.Owners[c] != w:
			lost = append(lost, code+" to "+after.Owners[c].Name())
		}
	}
	for i := range after.Dislodged {
		if d := after.Dislodged[i].Unit; d.Power == w {
			beaten = append(beaten, r.Board.UnitText(d))
		}
	}
	var parts []string
	for _, p := range []struct {
		what string
		list []string
	}{{"You won", won}, {"You lost", lost}, {"You were driven out:", beaten}} {
		if len(p.list) > 0 {
			parts = append(parts, p.what+" "+strings.Join(p.list, ", ")+".")
		}
	}
	return strings.Join(parts, " ")
}

// The votes, besides a power to concede to.
const (
	voteContinue = "PLAY_ON"
	voteDraw     = "DRAW"
)

// voting reports whether players vote with the orders of this phase.
func (g *game) voting() bool {
	return g.DrawFrom > 0 && g.pos.Phase.Year >= g.DrawFrom && g.pos.Phase.Step == rules.Movement
}

func (g *game) voteText(p *player) string {
	if !g.voting() || p.bot {
		return ""
	}
	return "Vote too: " + voteContinue + "; " + voteDraw + ", which ends the game now as a draw of all who are left, if all of them vote for it; " +
		"or the name of a power, which concedes the game to it, if all others do."
}

// endByVote ends the game if all voters voted for the same end. Then the orders of the phase are
// not carried out. Bots do not vote, and a power that did not answer votes to continue.
func (g *game) endByVote() bool {
	voters := slices.DeleteFunc(g.writers(), func(p *player) bool { return g.pos.Count(p.power) == 0 }) // a power without units is not asked
	if !g.voting() || len(voters) == 0 {
		return false
	}
	draw := true
	for _, p := range voters {
		draw = draw && strings.EqualFold(strings.TrimSpace(p.vote), voteDraw)
	}
	if draw {
		var all []rules.Power
		for _, p := range g.alive() {
			all = append(all, p.power)
		}
		g.endGame(endDraw, all...)
	} else if to := g.conceded(voters); to != rules.None {
		g.endGame(endConcession, to)
	} else {
		return false
	}
	for _, p := range voters {
		g.end.Votes = setKey(g.end.Votes, p.seat, p.vote)
	}
	return true
}

// conceded returns the power that all other voters voted for, or None.
func (g *game) conceded(voters []*player) rules.Power {
	for _, winner := range g.alive() {
		others := 0
		for _, p := range voters {
			if p == winner {
				continue // its own vote does not count
			}
			if w, ok := rules.ParsePower(p.vote); !ok || w != winner.power {
				others = 0
				break
			}
			others++
		}
		if others > 0 {
			return winner.power
		}
	}
	return rules.None
}
