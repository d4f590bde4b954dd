package diplomacy

import (
	"fmt"
	"strings"

	"parley/world"
)

// talk plays the rounds of talks before the orders of a movement phase. In a round all players
// write at the same time. A player that wrote nothing and received nothing new is not asked
// again; when no player is left, the talks end.
func (g *game) talk(t *world.Table) {
	speakers := g.writers()
	if len(speakers) < 2 {
		return // there is no one to talk to
	}
	sorted := make([]pressSorted, len(speakers))
	t.Fork(len(speakers), func(i int, t *world.Table) {
		p := speakers[i]
		g.prepare(t, p)
		p.returned = ""
		sorted[i] = g.sort(p, 1, t.One(g.speak(p, 1)))
	})
	g.deliver(t, speakers, sorted)
	for round := 2; round <= g.Rounds; round++ {
		var asked []*player
		var calls []world.Call
		for _, p := range speakers {
			if !p.silent || g.mail.Heard(g.pos.Phase.String(), round-1, p.power) {
				asked = append(asked, p)
				calls = append(calls, g.speak(p, round))
			}
		}
		if len(asked) == 0 {
			return
		}
		sorted := make([]pressSorted, len(asked))
		for i, reply := range t.Ask(calls...) {
			sorted[i] = g.sort(asked[i], round, reply)
		}
		g.deliver(t, asked, sorted)
	}
}

// speak asks for the messages of a round.
func (g *game) speak(p *player, round int) world.Call {
	return g.call(p, "message", promptTalk, g.forms.messages, moment{round: round, messages: g.pos.Phase.String()})
}

// sort reads what a player wrote. A failed call is silence.
func (g *game) sort(p *player, round int, reply world.Reply) pressSorted {
	answer, ok := decode[messagesAnswer](reply)
	if !ok {
		p.stats.Failed["message"]++
	}
	p.heard = p.heard || ok
	like := pressMessage{Phase: g.pos.Phase.String(), Round: round, From: p.power}
	s := g.mail.Sort(answer.Messages, like, g.present(), g.Messages)
	var returned []string
	for _, r := range s.Refused {
		p.stats.Refused["message: "+r.Reason]++
		returned = append(returned, fmt.Sprintf("to %q, %q: %s", r.Draft.To, r.Draft.Text, r.Why))
	}
	p.returned = strings.Join(returned, "; ")
	p.silent = len(s.Messages) == 0
	p.stats.Cut += s.Cut
	for _, m := range s.Messages {
		if m.Public() {
			p.stats.Public++
		} else {
			p.stats.Private++
		}
	}
	return s
}

// deliver delivers the messages of a round, in the order of powers.
func (g *game) deliver(t *world.Table, asked []*player, sorted []pressSorted) {
	for i, s := range sorted {
		seat := asked[i].seat
		g.mail.Deliver(s.Messages...)
		for _, m := range s.Messages {
			t.Note(noteMessage, seat, Message{Phase: m.Phase, Round: m.Round, To: m.Recipient(), Text: m.Text})
		}
		for _, r := range s.Refused {
			t.Note(noteRefused, seat, Refused{
				Phase: g.pos.Phase.String(), What: "message", Reason: r.Reason, Text: r.Draft.To + ": " + r.Draft.Text, Why: r.Why,
			})
		}
	}
}
