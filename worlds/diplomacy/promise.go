package diplomacy

import (
	"slices"
	"strings"

	"parley/llm"
	"parley/world"
	"parley/worlds/diplomacy/rules"
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
	messages := messageLines(rules.None, g.mail.inPhase(g.pos.Phase.String()))
	text := g.judge.fill(promptJudge, func(name string) string {
		switch name {
		case "messages":
			return messages
		case "position":
			return g.brief.board
		case "phase":
			return g.pos.Phase.String()
		}
		return ""
	})
	answer, ok := decodeAnswer[promisesAnswer](t.One(world.Call{Seat: judgeSeat, Label: "promises", Ask: llm.Request{
		Messages: []llm.Message{llm.User(text)}, Schema: g.forms.promises,
	}}))
	if !ok {
		g.tally.unjudged++
	} else {
		g.tally.judged++
	}
	return answer.Promises
}

// checkPromises compares promises with the orders that were given.
func (g *game) checkPromises(t *world.Table, drafts []promiseDraft) {
	const limit = 100
	list := []promiseRecord{}
	for _, d := range drafts[:min(len(drafts), limit)] {
		from, ok := rules.ParsePower(d.From)
		to, toPower := rules.ParsePower(d.To)
		if !ok || from == to || !toPower && !strings.EqualFold(d.To, toAll) || !slices.Contains(promiseKinds(), d.Kind) {
			continue
		}
		p := promiseRecord{Phase: g.pos.Phase.String(), From: from.String(), To: toAll, Kind: d.Kind, Unit: oneLine(d.Unit, 20), Place: oneLine(d.Place, 30), Quote: oneLine(d.Quote, 200)}
		if toPower {
			p.To = to.String()
		}
		p.Verdict = g.verdict(from, to, d)
		stats := g.players[from-1].stats
		switch p.Verdict {
		case verdictKept:
			stats.Kept++
		case verdictBroken:
			stats.Broken++
			stats.BrokenTo = setKey(stats.BrokenTo, p.To, stats.BrokenTo[p.To]+1)
			g.tally.brokenPromise(&p, from)
		default:
			stats.Unclear++
		}
		list = append(list, p)
	}
	if len(list) > 0 {
		t.Note(notePromises, "", list)
	}
}

// verdict decides whether a promise was kept, from the orders of the power that made it.
func (g *game) verdict(from, to rules.Power, d promiseDraft) string {
	b := g.rules.Board
	_, unit, unitErr := rules.ParseUnit(b, d.Unit)
	if unitErr != nil {
		unit, unitErr = rules.ParseLocation(b, d.Unit)
	}
	place, placeErr := rules.ParseLocation(b, d.Place)
	same := func(x, y rules.Location) bool {
		return x < rules.Locations && y < rules.Locations && b.Province(x) == b.Province(y)
	}
	kept := func(yes bool) string {
		if yes {
			return verdictKept
		}
		return verdictBroken
	}
	orders := g.players[from-1].orders
	gave := func(f func(o rules.Order) bool) bool {
		return slices.ContainsFunc(orders, func(x given) bool { return f(x.order) })
	}
	switch d.Kind {
	case promiseMove:
		if unitErr != nil || placeErr != nil || !g.has(from, unit) {
			return verdictUnclear
		}
		return kept(gave(func(o rules.Order) bool { return o.Kind == rules.Move && same(o.At, unit) && same(o.To, place) }))
	case promiseSupport, promiseConvoy:
		if unitErr != nil {
			return verdictUnclear
		}
		return kept(gave(func(o rules.Order) bool {
			return o.Kind.String() == d.Kind && same(o.Of, unit) && (placeErr != nil || same(o.To, place) || o.To == rules.Nowhere && same(o.Of, place))
		}))
	case promiseHold:
		if unitErr != nil || !g.has(from, unit) {
			return verdictUnclear
		}
		return kept(!gave(func(o rules.Order) bool { return o.Kind == rules.Move && same(o.At, unit) }))
	case promiseStayOut:
		if placeErr != nil {
			return verdictUnclear
		}
		return kept(!gave(func(o rules.Order) bool { return o.Kind == rules.Move && same(o.To, place) }))
	}
	if to == rules.None {
		return verdictUnclear
	}
	return kept(!gave(func(o rules.Order) bool { return g.against(o, to) }))
}

// has reports whether a power has a unit at a location.
func (g *game) has(w rules.Power, at rules.Location) bool {
	return at < rules.Locations && g.pos.Units[g.rules.Board.Province(at)].Power == w
}

// against reports whether an order attacks a power: its units or its centres.
func (g *game) against(o rules.Order, w rules.Power) bool {
	if o.To >= rules.Locations || o.Kind != rules.Move && o.Kind != rules.Support {
		return false
	}
	at := g.rules.Board.Province(o.To)
	if o.Kind == rules.Support && g.pos.Units[g.rules.Board.Province(o.Of)].Power == w {
		return false // it supports that power
	}
	return g.pos.Units[at].Power == w || g.pos.Owners[at] == w
}
