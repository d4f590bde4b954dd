package scenario

import (
	"fmt"
	"slices"

	"parley/world"
	"parley/worlds/scenario/standin"
)

// brief is what an actor is told before every question: who it is, what it alone knows,
// and what it remembers. m is the turn being played.
func (g *game) brief(m *moves, i int) *page {
	a, p := &g.cast[i], &page{}
	p.line(standin.YouAre, a.Name)
	p.field("Your role", a.Role)
	if a.Description != "" {
		p.line("%s", a.Description)
	}
	if a.System != "" {
		p.line("%s", a.System)
	}
	p.list(standin.Goals, a.Goals)
	p.list("Your constraints:", a.Constraints)
	p.list("Your expertise:", a.Expertise)
	p.field("Your level of expertise", a.ExpertiseLevel)
	p.field("How you decide", a.DecisionStyle)
	p.field("How you speak", a.CommunicationStyle)
	p.list("What you are like:", a.Traits)
	if len(a.Coalitions) > 0 {
		var with []int
		for _, short := range a.Coalitions {
			with = append(with, g.Actor(short))
		}
		p.line("You would rather work with: %s", g.names(with))
	}
	p.list("What you follow in public:", a.Public)
	if len(a.Private) > 0 {
		p.heading("## What only you know")
		for _, text := range a.Private {
			p.line("- %s", oneLine(text))
		}
	}
	g.memories(p, i)
	g.current(p, m, i)
	return p
}

// memories writes what an actor did, in full within the window and in a line before it.
func (g *game) memories(p *page, i int) {
	a := &g.cast[i]
	if len(a.past) == 0 {
		return
	}
	if a.aside != "" {
		p.heading("## What was said to you and by you in private, up to turn %d, in short", g.summarized)
		p.quote(a.aside)
	}
	p.heading("## What you did")
	for n, mem := range a.past {
		turn, d := n+1, mem.decision
		if turn <= len(a.past)-g.Window {
			if d.action != "" {
				p.quote(fmt.Sprintf("Turn %d: %s", turn, cut(oneLine(d.action), 200)))
			}
		} else {
			p.line("In turn %d:", turn)
			if d.action == "" {
				p.line("You did nothing.")
			} else {
				p.quote(d.action)
			}
			g.heard(p, i, mem.exchanges, mem.pacts)
		}
		if d.reflection != "" {
			p.line("What you learned in turn %d:", turn)
			p.quote(d.reflection)
		}
	}
	g.goals(p, a)
}

// goals writes what an actor wants now.
func (g *game) goals(p *page, a *actor) {
	p.heading("## What you want now")
	for _, goal := range a.long {
		p.quote(standin.InTheLongRun + oneLine(goal))
	}
	for _, goal := range a.short {
		p.quote("- next: " + oneLine(goal))
	}
}

// heard writes the exchanges and coalitions that an actor took part in.
func (g *game) heard(p *page, i int, exchanges []exchange, pacts []pact) {
	for _, x := range exchanges {
		if !slices.Contains(x.between[:], i) {
			continue
		}
		p.line("Between %s and you:", g.cast[x.other(i)].Name)
		g.lines(p, x)
	}
	for _, c := range pacts {
		if slices.Contains(c.members, i) {
			g.proposal(p, c)
			g.answers(p, c)
		}
	}
}

// lines writes an exchange. Who wrote what stands outside of what is quoted, where nobody
// can put words into another's mouth.
func (g *game) lines(p *page, x exchange) {
	for _, line := range x.lines {
		p.line("%s wrote:", g.cast[line.who].Name)
		p.quote(line.text)
	}
}

func (g *game) proposal(p *page, c pact) {
	p.line("%s proposed a coalition of %s:", g.cast[c.proposer].Name, g.names(c.members))
	p.quote(c.purpose)
}

// answers writes what came of a proposal.
func (g *game) answers(p *page, c pact) {
	for _, a := range c.answers {
		verb := "declined"
		if a.accepts {
			verb = "accepted"
		}
		p.line("%s %s:", g.cast[a.who].Name, verb)
		p.quote(a.text)
	}
	if c.agreed != "" {
		p.line("The members agreed:")
		p.quote(c.agreed)
	}
}

// current writes what has been said so far in the turn being played. In strands of talk
// that is what everybody opened with: nobody has heard anything else yet.
func (g *game) current(p *page, m *moves, i int) {
	if g.cast[i].Deaf || len(m.statements) == 0 {
		return
	}
	p.heading("## Turn %d so far", m.turn)
	g.said(p, m.statements, nil)
}

func (g *game) openingCall(i int) world.Call {
	p := g.brief(&moves{turn: g.now() + 1}, i)
	p.heading(standin.Turn+": what you say", g.now()+1, g.Turns)
	p.line("Before everybody decides, you can speak. All do so at the same moment.")
	if g.Talk.Statements {
		p.line("- In public: everybody reads it.")
	}
	if g.Talk.Bilateral {
		p.line("- To others in private: only you and whoever you write to read it, and can answer.")
	}
	if g.Talk.Coalitions {
		p.line("- Propose a coalition of yourself and two others or more. It is formed if all of them accept.")
	}
	if g.Talk.Most > 0 {
		p.line("You can turn to %d in private at most, a coalition counts as one. Saying nothing is fine.", g.Talk.Most)
	}
	return g.ask(g.cast[i].ShortName, "opening", p, g.openingSchema(i))
}

func (g *game) answerCall(m *moves, x *exchange, i int) world.Call {
	p := g.brief(m, i)
	p.heading(standin.Turn+": an exchange with %s", m.turn, g.Turns, g.cast[x.other(i)].Name)
	p.line("Only the two of you read this:")
	g.lines(p, *x)
	p.line("What do you write back?")
	return g.ask(g.cast[i].ShortName, "answer", p, replySchema())
}

func (g *game) inviteCall(m *moves, c *pact, i int) world.Call {
	p := g.brief(m, i)
	p.heading(standin.Turn+": a coalition", m.turn, g.Turns)
	g.proposal(p, *c)
	p.line("All of them answer at the same moment, and it is formed only if all accept. Do you join?")
	return g.ask(g.cast[i].ShortName, "coalition", p, inviteSchema())
}

func (g *game) jointCall(m *moves, c *pact) world.Call {
	p := g.brief(m, c.proposer)
	p.heading(standin.Turn+": your coalition is formed", m.turn, g.Turns)
	g.proposal(p, *c)
	g.answers(p, *c)
	p.line("Write down for all members what you agreed on, and what you say together in public, if anything.")
	return g.ask(g.cast[c.proposer].ShortName, "joint statement", p, jointSchema())
}

func (g *game) decisionCall(m *moves, i int) world.Call {
	p := g.brief(m, i)
	if !g.cast[i].Deaf {
		g.said(p, nil, m.pacts)
	}
	g.heard(p, i, m.exchanges, m.pacts)
	p.heading(standin.Turn+": what you do", m.turn, g.Turns)
	p.line("Decide what you do in this turn. Everybody decides at the same moment: you do not know what the others do now. " +
		"What you do in secret, say so: others learn of it only if it comes out. Stay who you are, within your means and constraints.")
	return g.ask(g.cast[i].ShortName, "decision", p, g.decisionSchema())
}

// asideCall asks an actor to sum up what it said and was told in private, with one turn
// more.
func (g *game) asideCall(i, turn int) world.Call {
	p := &page{}
	p.line(standin.YouAre, g.cast[i].Name)
	if g.cast[i].aside != "" {
		p.line("What was said to you and by you in private before turn %d, in short:", turn)
		p.quote(g.cast[i].aside)
	}
	p.line("In turn %d:", turn)
	mem := g.cast[i].past[turn-1]
	g.heard(p, i, mem.exchanges, mem.pacts)
	p.line("You will no longer read these words. " + standin.SumUp + " what was offered, promised, asked and agreed in private in all turns so far, and by whom; what was kept and what is still open. Nobody else reads it. Add nothing.")
	return g.ask(g.cast[i].ShortName, "private summary", p, summarySchema())
}
