package diplomacy

import (
	"parley/llm"
	"parley/world"
	"parley/worlds/diplomacy/rules"
)

// decide asks all players for the orders of a movement phase, and after talks for a diary entry
// in the same answer. Each player is a strand, which repeats the question for illegal orders.
// At the same time diaries are shortened and the judge finds promises.
func (g *game) decide(t *world.Table) {
	players := g.alive()
	due := g.shortens()
	asked := snapshots(due)
	accounts, folded := make([]string, len(due)), make([]int, len(due))
	judges := 0
	if g.Judge && len(g.mail.All(g.pos.Phase.String())) > 0 {
		judges = 1
	}
	var promises []promiseDraft
	t.Fork(len(players)+len(due)+judges, func(i int, t *world.Table) {
		switch j := i - len(players); {
		case j < 0:
			if g.Rounds == 0 || len(g.writers()) < 2 { // no talks prepared the players
				g.prepare(t, players[i])
			}
			g.order(t, players[i], players[i])
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

// shortens lists the players whose diary is due for shortening: in spring, if it has entries
// older than last year.
func (g *game) shortens() []*player {
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
		if len(g.brief.Choices(p.power)) > 0 {
			orders = append(orders, p)
		}
		if p.behind && g.pos.Alive(p.power) {
			reviews = append(reviews, p)
		}
	}
	asked := snapshots(orders)
	t.Fork(len(orders)+len(reviews), func(i int, t *world.Table) {
		if i < len(orders) {
			g.order(t, orders[i], asked[i])
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

// order asks a player for its orders, and once more for those that are illegal. Prompts are
// about snapshot.
func (g *game) order(t *world.Table, p, snapshot *player) {
	s := newSlate(g, p)
	if len(s.open) == 0 {
		return
	}
	call := g.orderCall(t, snapshot)
	call.Offer = g.offer(p, s.open)
	reply := t.One(call)
	answer, ok := decode[ordersAnswer](reply)
	g.ordersAsked.Add(reply)
	if !ok {
		p.stats.Failed[call.Label]++
	}
	if g.looksBack(p) && ok {
		g.enter(t, p, AboutTalks, answer.diaryAnswer)
	}
	p.reason, p.vote = pressLine(answer.Reason, maxEntry), pressLine(answer.Vote, 20)
	s.take(answer.Orders)
	if len(s.wrong) > 0 && len(s.open) > 0 && !p.bot {
		s.note(t)
		again := call
		again.Label, again.Offer = "again", g.offer(p, s.open)
		again.Ask.Messages = append(append([]llm.Message{}, call.Ask.Messages...), llm.Assistant(string(reply.JSON)),
			llm.User(p.set.Fill(promptAgain, g.values(snapshot, moment{only: s.openSet(), wrong: s.complaint()}))))
		again.Ask.Schema = g.forms.orders[0][0]
		answer, ok := decode[ordersAnswer](t.One(again))
		if !ok {
			p.stats.Failed["again"]++
		}
		before := len(s.orders)
		s.wrong = nil
		s.take(answer.Orders)
		p.stats.Mended += len(s.orders) - before
	}
	s.note(t)
	p.orders = s.done()
}

// looksBack reports whether a player writes a diary entry about the talks: if it saw a message.
func (g *game) looksBack(p *player) bool {
	return g.Diary && !p.bot && g.pos.Phase.Step == rules.Movement && len(g.mail.Of(g.pos.Phase.String(), p.power)) > 0
}

// orderCall returns the question for the orders of the phase.
func (g *game) orderCall(t *world.Table, p *player) world.Call {
	label, template, form := "orders", promptOrders, g.forms.orders[0][0]
	m := moment{messages: g.pos.Phase.String()}
	switch g.pos.Phase.Step {
	case rules.Retreats:
		label, template = "retreats", promptRetreat
	case rules.Adjustments:
		label, template = "builds", adjust
	default:
		talks, vote := 0, 0
		if g.looksBack(p) {
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
