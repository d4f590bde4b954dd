package diplomacy

import (
	"parley/world"
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
	brief *diplomacyBrief // of pos
	mail  pressMail
	last  past // the last movement phase
	book  *book
	end   *End // nil until the game is over

	ordersAsked world.Unanswered
}

// past is a movement phase that is over.
type past struct {
	year  int
	phase string
	text  string // its orders and their results
}

// player is a power and its state. Each strand writes only to its own player.
type player struct {
	power rules.Power
	seat  string
	bot   bool
	// person is whether it is a person, who gets choices and a picture with a question for orders.
	person bool
	set    *promptSet

	shared    string // the beginning of all prompts of the phase
	options   string // what its units can do in the phase
	goals     []string
	relations relations
	diary     diary
	plan      string
	returned  string // messages of the last round that were not delivered
	changes   string // what it won and lost in the last movement phase
	started   bool
	behind    bool // it has not reviewed the last movement phase yet
	silent    bool // it wrote nothing when it was last asked
	heard     bool // a question for messages was answered
	viewed    bool // a question about relations was answered

	orders []given
	reason string
	vote   string

	stats *recordPower
}

func (d *definition) newGame(p *Params, lineup world.Lineup) (*game, error) {
	sets, err := d.sets(p)
	if err != nil {
		return nil, err
	}
	start, err := d.start(p)
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
			stats: newStats(),
		})
		if !start.Alive(w) {
			g.players[w-1].stats.Out = start.Phase.Year - 1
		}
	}
	return g, nil
}

// Play plays from phase to phase until the game is over.
func (g *game) Play(t *world.Table) world.Outcome {
	g.book = newBook(g)
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
	g.brief = newBrief(g.rules, &pos)
	for _, p := range g.writers() {
		p.options = ""
		if len(g.brief.Choices(p.power)) > 0 {
			p.options = g.brief.Options(p.power, rules.Set[rules.Province]{})
		}
		value := g.values(p, moment{})
		p.shared = p.set.Fill(promptRules, value) + "\n\n" + p.set.Fill(promptBoard, value)
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

// rank is a number that orders phases.
func rank(p rules.Phase) int { return 9*p.Year + 3*int(p.Season) + int(p.Step) }

// movesAgain reports whether another movement phase can follow the current one.
func (g *game) movesAgain() bool {
	next := rules.Phase{Year: g.pos.Phase.Year, Season: rules.Fall}
	if g.pos.Phase.Season != rules.Spring {
		next = rules.Phase{Year: g.pos.Phase.Year + 1}
	}
	return rank(next) <= rank(g.until)
}
