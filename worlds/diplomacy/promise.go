package diplomacy

import (
	"slices"
	"strings"

	"parley/llm"
	"parley/world"
	"parley/worlds/diplomacy/press"
	"parley/worlds/diplomacy/prompt"
	"parley/worlds/diplomacy/record"
	"parley/worlds/diplomacy/rules/board"
	"parley/worlds/diplomacy/rules/order"
)

// The kinds of promises.
const (
	promiseMove     = "move"
	promiseSupport  = "support"
	promiseConvoy   = "convoy"
	promiseHold     = "hold"
	promiseStayOut  = "stay_out"
	promiseNoAttack = "no_attack"
)

func promiseKinds() []string {
	return []string{promiseMove, promiseSupport, promiseConvoy, promiseHold, promiseStayOut, promiseNoAttack}
}

// askPromises asks the judge for the promises in the messages of the phase.
func (g *game) askPromises(t *world.Table) []promiseDraft {
	messages := messageLines(board.None, g.mail.All(g.pos.Phase.String()))
	text := g.judge.Fill(prompt.Judge, func(name string) string {
		switch name {
		case "messages":
			return messages
		case "position":
			return g.brief.Board()
		case "phase":
			return g.pos.Phase.String()
		}
		return ""
	})
	answer, ok := decode[promisesAnswer](t.One(world.Call{Seat: Judge, Label: "promises", Ask: llm.Request{
		Messages: []llm.Message{llm.User(text)}, Schema: g.forms.promises,
	}}))
	if !ok {
		g.book.unjudged++
	}
	return answer.Promises
}

// checkPromises compares promises with the orders that were given.
func (g *game) checkPromises(t *world.Table, drafts []promiseDraft) {
	const limit = 100
	list := []record.Promise{}
	for _, d := range drafts[:min(len(drafts), limit)] {
		from, ok := board.ParsePower(d.From)
		to, toPower := board.ParsePower(d.To)
		if !ok || from == to || !toPower && !strings.EqualFold(d.To, press.All) || !slices.Contains(promiseKinds(), d.Kind) {
			continue
		}
		p := record.Promise{Phase: g.pos.Phase.String(), From: from.String(), To: press.All, Kind: d.Kind, Unit: press.Line(d.Unit, 20), Place: press.Line(d.Place, 30), Quote: press.Line(d.Quote, 200)}
		if toPower {
			p.To = to.String()
		}
		p.Verdict = g.verdict(from, to, d)
		stats := g.players[from-1].stats
		switch p.Verdict {
		case record.Kept:
			stats.Kept++
		case record.Broken:
			stats.Broken++
		default:
			stats.Unclear++
		}
		list = append(list, p)
	}
	if len(list) > 0 {
		t.Note(record.NotePromises, "", list)
	}
}

// verdict decides whether a promise was kept, from the orders of the power that made it.
func (g *game) verdict(from, to board.Power, d promiseDraft) string {
	b := g.rules.Board
	_, unit, unitErr := order.ParseUnit(b, d.Unit)
	if unitErr != nil {
		unit, unitErr = order.ParseLocation(b, d.Unit)
	}
	place, placeErr := order.ParseLocation(b, d.Place)
	same := func(x, y board.Location) bool {
		return x < board.Locations && y < board.Locations && b.Province(x) == b.Province(y)
	}
	kept := func(yes bool) string {
		if yes {
			return record.Kept
		}
		return record.Broken
	}
	orders := g.players[from-1].orders
	gave := func(f func(o order.Order) bool) bool {
		return slices.ContainsFunc(orders, func(x given) bool { return f(x.order) })
	}
	switch d.Kind {
	case promiseMove:
		if unitErr != nil || placeErr != nil || !g.has(from, unit) {
			return record.Unclear
		}
		return kept(gave(func(o order.Order) bool { return o.Kind == order.Move && same(o.At, unit) && same(o.To, place) }))
	case promiseSupport, promiseConvoy:
		if unitErr != nil {
			return record.Unclear
		}
		return kept(gave(func(o order.Order) bool {
			return o.Kind.String() == d.Kind && same(o.Of, unit) && (placeErr != nil || same(o.To, place) || o.To == board.Nowhere && same(o.Of, place))
		}))
	case promiseHold:
		if unitErr != nil || !g.has(from, unit) {
			return record.Unclear
		}
		return kept(!gave(func(o order.Order) bool { return o.Kind == order.Move && same(o.At, unit) }))
	case promiseStayOut:
		if placeErr != nil {
			return record.Unclear
		}
		return kept(!gave(func(o order.Order) bool { return o.Kind == order.Move && same(o.To, place) }))
	}
	if to == board.None {
		return record.Unclear
	}
	return kept(!gave(func(o order.Order) bool { return g.against(o, to) }))
}

// has reports whether a power has a unit at a location.
func (g *game) has(w board.Power, at board.Location) bool {
	return at < board.Locations && g.pos.Units[g.rules.Board.Province(at)].Power == w
}

// against reports whether an order attacks a power: its units or its centres.
func (g *game) against(o order.Order, w board.Power) bool {
	if o.To >= board.Locations || o.Kind != order.Move && o.Kind != order.Support {
		return false
	}
	at := g.rules.Board.Province(o.To)
	if o.Kind == order.Support && g.pos.Units[g.rules.Board.Province(o.Of)].Power == w {
		return false // it supports that power
	}
	return g.pos.Units[at].Power == w || g.pos.Owners[at] == w
}
