package scenario

import (
	"fmt"
	"slices"

	"parley/world"
	"parley/worlds/scenario/script"
)

// brief writes what an actor reads before every question: who it is, what it alone knows,
// and what it remembers. m is the turn being played.
func (g *game) brief(m *moves, i int) *script.Page {
	a, p := &g.cast[i], &script.Page{}
	p.Line(youAre, a.Name)
	p.Field("Your role", a.Role)
	if a.Description != "" {
		p.Line("%s", a.Description)
	}
	if a.System != "" {
		p.Line("%s", a.System)
	}
	p.List(standinGoals, a.Goals)
	p.List("Your constraints:", a.Constraints)
	p.List("Your expertise:", a.Expertise)
	p.Field("Your level of expertise", a.ExpertiseLevel)
	p.Field("How you decide", a.DecisionStyle)
	p.Field("How you speak", a.CommunicationStyle)
	p.List("What you are like:", a.Traits)
	if len(a.Coalitions) > 0 {
		var with []int
		for _, short := range a.Coalitions {
			with = append(with, g.Actor(short))
		}
		p.Line("You would rather work with: %s", g.names(with))
	}
	p.List("What you follow in public:", a.Public)
	if len(a.Private) > 0 {
		p.Heading("## What only you know")
		for _, words := range a.Private {
			p.Line("- %s", script.OneLine(words))
		}
	}
	g.memories(p, i)
	g.current(p, m, i)
	return p
}

// memories writes what an actor did, in full within the window and in one line before it.
func (g *game) memories(p *script.Page, i int) {
	a := &g.cast[i]
	if len(a.past) == 0 {
		return
	}
	if a.aside != "" {
		p.Heading("## What was said to you and by you in private, up to turn %d, in short", g.summarized)
		p.Quote(a.aside)
	}
	p.Heading("## What you did")
	for n, mem := range a.past {
		turn, d := n+1, mem.decision
		if turn <= len(a.past)-g.Window {
			if d.Action != "" {
				p.Quote(fmt.Sprintf("Turn %d: %s", turn, script.Cut(script.OneLine(d.Action), 200)))
			}
		} else {
			p.Line("In turn %d:", turn)
			if d.Action == "" {
				p.Line("You did nothing.")
			} else {
				p.Quote(d.Action)
			}
			g.heard(p, i, mem.exchanges, mem.pacts)
		}
		if d.Reflection != "" {
			p.Line("What you learned in turn %d:", turn)
			p.Quote(d.Reflection)
		}
	}
	g.goals(p, a)
}

// goals writes the current goals of an actor.
func (g *game) goals(p *script.Page, a *actor) {
	p.Heading("## What you want now")
	for _, goal := range a.long {
		p.Quote(inTheLongRun + script.OneLine(goal))
	}
	for _, goal := range a.short {
		p.Quote("- next: " + script.OneLine(goal))
	}
}

// heard writes the exchanges and coalitions that an actor took part in.
func (g *game) heard(p *script.Page, i int, exchanges []exchange, pacts []pact) {
	for _, x := range exchanges {
		if !slices.Contains(x.between[:], i) {
			continue
		}
		p.Line("Between %s and you:", g.cast[x.other(i)].Name)
		g.lines(p, x)
	}
	for _, c := range pacts {
		if slices.Contains(c.members, i) {
			g.proposal(p, c)
			g.answers(p, c)
		}
	}
}

// lines writes an exchange. The names of the speakers are outside the quotes, so that an actor
// cannot pretend that another said something.
func (g *game) lines(p *script.Page, x exchange) {
	for _, line := range x.lines {
		p.Line("%s wrote:", g.cast[line.who].Name)
		p.Quote(line.text)
	}
}

func (g *game) proposal(p *script.Page, c pact) {
	p.Line("%s proposed a coalition of %s:", g.cast[c.proposer].Name, g.names(c.members))
	p.Quote(c.purpose)
}

// answers writes the answers to a proposal.
func (g *game) answers(p *script.Page, c pact) {
	for _, a := range c.answers {
		verb := "declined"
		if a.accepts {
			verb = "accepted"
		}
		p.Line("%s %s:", g.cast[a.who].Name, verb)
		p.Quote(a.text)
	}
	if c.agreed != "" {
		p.Line("The members agreed:")
		p.Quote(c.agreed)
	}
}

// current writes the public statements of the turn being played so far.
func (g *game) current(p *script.Page, m *moves, i int) {
	if g.cast[i].Deaf || len(m.statements) == 0 {
		return
	}
	p.Heading("## Turn %d so far", m.turn)
	g.said(p, m.statements, nil)
}

func (g *game) openingCall(i int) world.Call {
	p := g.brief(&moves{turn: g.now() + 1}, i)
	p.Heading(standinTurn+": what you say", g.now()+1, g.Turns)
	p.Line("Before everybody decides, you can speak. All do so at the same moment.")
	if g.Talk.Statements {
		p.Line("- In public: everybody reads it.")
	}
	if g.Talk.Bilateral {
		p.Line("- To others in private: only you and whoever you write to read it, and can answer.")
	}
	if g.Talk.Coalitions {
		p.Line("- Propose a coalition of yourself and two others or more. It is formed if all of them accept.")
	}
	if g.Talk.Max > 0 {
		p.Line("You can turn to %d in private at most, a coalition counts as one. Saying nothing is fine.", g.Talk.Max)
	}
	return g.ask(g.cast[i].ShortName, "opening", p, script.OpeningSchema(g.Talk, g.others(i)))
}

func (g *game) answerCall(m *moves, x *exchange, i int) world.Call {
	p := g.brief(m, i)
	p.Heading(standinTurn+": an exchange with %s", m.turn, g.Turns, g.cast[x.other(i)].Name)
	p.Line("Only the two of you read this:")
	g.lines(p, *x)
	p.Line("What do you write back?")
	return g.ask(g.cast[i].ShortName, "answer", p, script.ReplySchema())
}

func (g *game) inviteCall(m *moves, c *pact, i int) world.Call {
	p := g.brief(m, i)
	p.Heading(standinTurn+": a coalition", m.turn, g.Turns)
	g.proposal(p, *c)
	p.Line("All of them answer at the same moment, and it is formed only if all accept. Do you join?")
	return g.ask(g.cast[i].ShortName, "coalition", p, script.InviteSchema())
}

func (g *game) jointCall(m *moves, c *pact) world.Call {
	p := g.brief(m, c.proposer)
	p.Heading(standinTurn+": your coalition is formed", m.turn, g.Turns)
	g.proposal(p, *c)
	g.answers(p, *c)
	p.Line("Write down for all members what you agreed on, and what you say together in public, if anything.")
	return g.ask(g.cast[c.proposer].ShortName, "joint statement", p, script.JointSchema())
}

func (g *game) decisionCall(m *moves, i int) world.Call {
	p := g.brief(m, i)
	if !g.cast[i].Deaf {
		g.said(p, nil, m.pacts)
	}
	g.heard(p, i, m.exchanges, m.pacts)
	p.Heading(standinTurn+": what you do", m.turn, g.Turns)
	p.Line("Decide what you do in this turn. Everybody decides at the same moment: you do not know what the others do now. " +
		"What you do in secret, say so: others learn of it only if it comes out. Stay who you are, within your means and constraints.")
	return g.ask(g.cast[i].ShortName, "decision", p, script.DecisionSchema(g.Reflect))
}

// asideCall asks an actor to extend the summary of its private talk by one turn.
func (g *game) asideCall(i, turn int) world.Call {
	p := &script.Page{}
	p.Line(youAre, g.cast[i].Name)
	if g.cast[i].aside != "" {
		p.Line("What was said to you and by you in private before turn %d, in short:", turn)
		p.Quote(g.cast[i].aside)
	}
	p.Line("In turn %d:", turn)
	mem := g.cast[i].past[turn-1]
	g.heard(p, i, mem.exchanges, mem.pacts)
	p.Line("You will no longer read these words. " + sumUp + " what was offered, promised, asked and agreed in private in all turns so far, and by whom; what was kept and what is still open. Nobody else reads it. Add nothing.")
	return g.ask(g.cast[i].ShortName, "private summary", p, script.SummarySchema())
}
