package diplomacy

import (
	"parley/llm"
	"parley/world"
	"parley/worlds/diplomacy/bot"
	"parley/worlds/diplomacy/press"
	"parley/worlds/diplomacy/prompt"
	"parley/worlds/diplomacy/record"
	"parley/worlds/diplomacy/rules"
)

// decide asks everybody for the orders of a movement phase, and after talks for what they
// came to, in the same answer. Each goes its own way: what was not legal is asked for
// again at once. Beside them diaries are shortened and promises are read, which nobody
// waits for before the orders are in.
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
			if g.Rounds == 0 || len(g.writers()) < 2 { // there were no talks to prepare for
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

// shortens lists whose diary is to be shortened: in spring, what is older than last year.
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

// settle plays a phase of retreats or adjustments. Meanwhile everybody looks at the
// results of the movement phase: orders do not wait for that.
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

// snapshots are players as they are now: what they are told must not depend on how far
// another strand of theirs has come.
func snapshots(players []*player) []*player {
	list := make([]*player, len(players))
	for i, p := range players {
		now := *p
		list[i] = &now
	}
	return list
}

// order asks a player for its orders, and once more for those that are not legal. Told is
// the player as prompts have it.
func (g *game) order(t *world.Table, p, told *player) {
	s := newSlate(g, p)
	if len(s.open) == 0 {
		return
	}
	call := g.orderCall(t, told)
	reply := t.One(call)
	answer, ok := decode[ordersAnswer](reply)
	g.ordersAsked.Add(reply)
	if !ok {
		p.stats.Failed[call.Label]++
	}
	if g.looksBack(p) && ok {
		g.enter(t, p, record.AboutTalks, answer.diaryAnswer)
	}
	p.reason, p.vote = press.Line(answer.Reason, maxEntry), press.Line(answer.Vote, 20)
	s.take(answer.Orders)
	if len(s.wrong) > 0 && len(s.open) > 0 && !p.bot {
		s.note(t)
		again := call
		again.Label = "again"
		again.Ask.Messages = append(append([]llm.Message{}, call.Ask.Messages...), llm.Assistant(string(reply.JSON)),
			llm.User(p.set.Fill(prompt.Again, g.values(told, moment{only: s.openSet(), wrong: s.complaint()}))))
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

// looksBack says whether a player writes down what talks came to: if it saw any message.
func (g *game) looksBack(p *player) bool {
	return g.Diary && !p.bot && g.pos.Phase.Step == rules.Movement && len(g.mail.Of(g.pos.Phase.String(), p.power)) > 0
}

// orderCall is the question for orders, as the phase has it.
func (g *game) orderCall(t *world.Table, p *player) world.Call {
	label, template, form := "orders", prompt.Orders, g.forms.orders[0][0]
	m := moment{messages: g.pos.Phase.String()}
	switch g.pos.Phase.Step {
	case rules.Retreats:
		label, template = "retreats", prompt.Retreat
	case rules.Adjustments:
		label, template = "builds", prompt.Adjust
	default:
		talks, vote := 0, 0
		if g.looksBack(p) {
			template, talks = prompt.Decide, 1
		}
		if g.voting() && !p.bot {
			vote = 1
		}
		form = g.forms.orders[talks][vote]
	}
	if p.bot {
		return bot.Call(p.seat, label, form, g.rules.State(&g.pos), t.Rand().Uint64())
	}
	return g.call(p, label, template, form, m)
}
