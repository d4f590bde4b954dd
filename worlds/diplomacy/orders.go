package diplomacy

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"parley/llm"
	"parley/world"
	"parley/worlds/diplomacy/rules"
)

// decide asks all players for the orders of a movement phase, and after talks for a diary entry
// in the same answer. Each player is a strand, which repeats the question for illegal orders.
// At the same time diaries are shortened and the judge finds promises.
func (g *game) decide(t *world.Table) {
	players := g.alive()
	due := g.dueForShortening()
	asked := snapshots(due)
	accounts, folded := make([]string, len(due)), make([]int, len(due))
	judges := 0
	if g.Judge && len(g.mail.inPhase(g.pos.Phase.String())) > 0 {
		judges = 1
	}
	var promises []promiseDraft
	t.Fork(len(players)+len(due)+judges, func(i int, t *world.Table) {
		switch j := i - len(players); {
		case j < 0:
			if g.Rounds == 0 || len(g.writers()) < 2 { // no talks prepared the players
				g.prepare(t, players[i])
			}
			g.askOrders(t, players[i], players[i])
		case j < len(due):
			accounts[j], folded[j] = g.shorten(t, due[j], asked[j])
		default:
			promises = g.askPromises(t)
		}
	})
	for i, p := range due {
		if folded[i] > 0 {
			p.diary.years, p.diary.entries = accounts[i], p.diary.entries[folded[i]:]
		}
	}
	g.checkPromises(t, promises)
}

// dueForShortening lists the players whose diary is due for shortening: in spring, if it has entries
// older than last year.
func (g *game) dueForShortening() []*player {
	var due []*player
	if g.pos.Phase.Season != rules.Spring {
		return nil
	}
	for _, p := range g.writers() {
		if len(p.diary.before(g.pos.Phase.Year-1)) > 0 {
			due = append(due, p)
		}
	}
	return due
}

// settle plays a phase of retreats or adjustments. At the same time all players review the
// movement phase: orders do not wait for that.
func (g *game) settle(t *world.Table) {
	var orders, reviews []*player
	for _, p := range g.players {
		if len(g.brief.choicesOf(p.power)) > 0 {
			orders = append(orders, p)
		}
		if p.reviewDue && g.pos.Alive(p.power) {
			reviews = append(reviews, p)
		}
	}
	asked := snapshots(orders)
	t.Fork(len(orders)+len(reviews), func(i int, t *world.Table) {
		if i < len(orders) {
			g.askOrders(t, orders[i], asked[i])
			return
		}
		g.review(t, reviews[i-len(orders)])
	})
}

// snapshots copies players: a prompt must not depend on the progress of another strand of the
// same player.
func snapshots(players []*player) []*player {
	list := make([]*player, len(players))
	for i, p := range players {
		now := *p
		list[i] = &now
	}
	return list
}

// askOrders asks a player for its orders, and once more for those that are illegal. Prompts are
// about snapshot.
func (g *game) askOrders(t *world.Table, p, snapshot *player) {
	s := newOrderSheet(g, p)
	if len(s.open) == 0 {
		return
	}
	call := g.orderCall(t, snapshot)
	call.Offer = g.offer(p, s.open)
	reply := t.One(call)
	answer, ok := decodeAnswer[ordersAnswer](reply)
	g.ordersAsked.Add(reply)
	if !ok {
		p.stats.Failed[call.Label]++
	}
	if g.writesAboutTalks(p) && ok {
		g.enter(t, p, aboutTalks, answer.diaryAnswer)
	}
	p.reason, p.vote = oneLine(answer.Reason, maxEntry), oneLine(answer.Vote, 20)
	s.read(answer.Orders)
	if len(s.wrong) > 0 && len(s.open) > 0 && !p.bot {
		s.note(t)
		again := call
		again.Label, again.Offer = "again", g.offer(p, s.open)
		again.Ask.Messages = append(append([]llm.Message{}, call.Ask.Messages...), llm.Assistant(string(reply.JSON)),
			llm.User(p.set.fill(promptAgain, g.values(snapshot, promptContext{only: s.openSet(), wrong: s.refusedText()}))))
		again.Ask.Schema = g.forms.orders[0][0]
		answer, ok := decodeAnswer[ordersAnswer](t.One(again))
		if !ok {
			p.stats.Failed["again"]++
		}
		before := len(s.orders)
		s.wrong = nil
		s.read(answer.Orders)
		p.stats.Mended += len(s.orders) - before
	}
	s.note(t)
	p.orders = s.done()
}

// writesAboutTalks reports whether a player writes a diary entry about the talks: if it saw a message.
func (g *game) writesAboutTalks(p *player) bool {
	return g.Diary && !p.bot && g.pos.Phase.Step == rules.Movement && len(g.mail.readableBy(g.pos.Phase.String(), p.power)) > 0
}

// orderCall returns the question for the orders of the phase.
func (g *game) orderCall(t *world.Table, p *player) world.Call {
	label, template, form := "orders", promptOrders, g.forms.orders[0][0]
	m := promptContext{messages: g.pos.Phase.String()}
	switch g.pos.Phase.Step {
	case rules.Retreats:
		label, template = "retreats", promptRetreat
	case rules.Adjustments:
		label, template = "builds", promptAdjust
	default:
		talks, vote := 0, 0
		if g.writesAboutTalks(p) {
			template, talks = promptDecide, 1
		}
		if g.voting() && !p.bot {
			vote = 1
		}
		form = g.forms.orders[talks][vote]
	}
	if p.bot {
		return botCall(p.seat, label, form, g.rules.State(&g.pos), t.Rand().Uint64())
	}
	return g.call(p, label, template, form, m)
}

// given is an order that counts.
type given struct {
	order   rules.Order
	missing bool // the player did not give it
}

// orderSheet collects the orders of one player.
type orderSheet struct {
	g      *game
	p      *player
	open   []rules.Province // provinces that still need an order
	left   int              // how many orders are still wanted
	orders []given
	wrong  []refusedRecord
}

func newOrderSheet(g *game, p *player) *orderSheet {
	s := &orderSheet{g: g, p: p}
	for _, c := range g.brief.choicesOf(p.power) {
		s.open = append(s.open, c.At)
	}
	s.left = len(s.open)
	if g.pos.Phase.Step == rules.Adjustments {
		s.left = max(g.rules.Allowed(&g.pos, p.power), -g.rules.Allowed(&g.pos, p.power))
	}
	return s
}

// read reads orders: each unchanged, or refused with a reason.
func (s *orderSheet) read(texts []string) {
	const limit = 60 // more than any power has units
	for _, text := range texts[:min(len(texts), limit)] {
		o, err := rules.Parse(s.g.rules.Board, text)
		if err != nil {
			if why := errors.Unwrap(err); why != nil {
				err = why // without the order itself, which the note has
			}
			s.refuse(text, "unreadable", err)
			continue
		}
		legal, err := s.g.rules.Check(&s.g.pos, s.p.power, o)
		if err != nil {
			s.refuse(text, "illegal "+o.Kind.String(), err)
			continue
		}
		if err := s.accept(legal); err != nil {
			s.refuse(text, "too many", err)
		}
	}
}

// accept accepts a legal order, unless there is already one for the same province.
func (s *orderSheet) accept(o rules.Order) error {
	if s.left == 0 {
		return fmt.Errorf("%s has ordered enough already", s.p.power.Name())
	}
	if o.Kind != rules.Waive {
		at := s.g.rules.Board.Province(o.At)
		i := slices.Index(s.open, at)
		if i < 0 {
			return fmt.Errorf("%s has an order already", s.g.rules.Board.Code(o.At))
		}
		s.open = slices.Delete(s.open, i, i+1)
	}
	s.left--
	if s.left == 0 {
		s.open = nil
	}
	s.orders = append(s.orders, given{order: o})
	return nil
}

func (s *orderSheet) refuse(text, reason string, err error) {
	s.p.stats.Refused["order: "+reason]++
	s.wrong = append(s.wrong, refusedRecord{
		Phase: s.g.pos.Phase.String(), What: "order", Reason: reason, Text: oneLine(text, 80), Why: oneLine(err.Error(), 200),
	})
}

// note records the refused orders.
func (s *orderSheet) note(t *world.Table) {
	for _, r := range s.wrong {
		t.Note(noteRefused, s.p.seat, r)
	}
}

// refusedText lists the refused orders for the player.
func (s *orderSheet) refusedText() string {
	lines := make([]string, len(s.wrong))
	for i, r := range s.wrong {
		lines[i] = fmt.Sprintf("- %q: %s", r.Text, r.Why)
	}
	return strings.Join(lines, "\n")
}

func (s *orderSheet) openSet() rules.Set[rules.Province] {
	var set rules.Set[rules.Province]
	for _, p := range s.open {
		set.Add(p)
	}
	return set
}

// done returns the orders. In a movement phase, units without a legal order hold; in other
// phases the rules decide.
func (s *orderSheet) done() []given {
	if s.g.pos.Phase.Step != rules.Movement {
		return s.orders
	}
	for _, at := range s.open {
		u := s.g.pos.Units[at]
		s.orders = append(s.orders, given{rules.NewOrder(rules.Hold, u.Type, u.Location), true})
		s.p.stats.Missing++
	}
	return s.orders
}

// offer returns a picture of the board for a person, and the legal orders of the person's units in open, the provinces
// that need orders. It returns nil for other players: the prompt is enough for them.
func (g *game) offer(p *player, open []rules.Province) *world.Offer {
	if !p.person {
		return nil
	}
	b := g.rules.Board
	o := &world.Offer{Field: "orders"}
	for _, c := range g.brief.choicesOf(p.power) {
		if !slices.Contains(open, c.At) {
			continue
		}
		row := world.Choice{Name: b.Name(c.At), At: b.Code(rules.Location(c.At))}
		for _, one := range c.Orders {
			row.Options = append(row.Options, one.Text(b))
		}
		o.Choices = append(o.Choices, row)
	}
	state := g.rules.State(&g.pos)
	svg, err := drawPosition(b, state.Name, state, g.last.moves, open)
	if err == nil { // the choices are enough without a picture
		o.SVG, o.Alt = svg, g.brief.board
		if len(g.last.moves) > 0 {
			o.Caption = "Arrows are the moves of " + g.last.phase + "; one with a bar at its end failed."
		}
	}
	return o
}
