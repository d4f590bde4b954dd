package scenario

import (
	"parley/world"
	"parley/worlds/scenario/script"
)

// updateCall asks the narrator what follows. The narrator reads what is public and what actors do,
// but neither their private knowledge nor their private talk, so it cannot reveal them.
func (g *game) updateCall(m moves, events []recordEvent, swan bool) world.Call {
	p := &script.Page{}
	p.Line(youAre, "the narrator")
	p.Line("You write what happens. Nobody speaks for you and you favour nobody: actions have the effect they would have, and some fail.")
	p.List("True, and not known in public:", g.hidden)
	if len(g.untold) > 0 {
		p.Heading("## Not told yet")
		for _, text := range g.untold {
			p.Quote(text)
		}
	}
	if len(m.statements) > 0 || len(m.pacts) > 0 {
		p.Heading("## Said in turn %d", m.turn)
		g.said(p, m.statements, m.pacts)
	}
	p.Heading(standinDone, m.turn)
	for _, s := range g.actions(m) {
		p.Line("%s:", g.cast[s.who].Name)
		p.Quote(s.text)
	}
	for i, d := range m.decisions {
		if d.Action == "" {
			p.Line("%s does nothing.", g.cast[i].Name)
		}
	}
	if len(events) > 0 {
		p.Heading(outside, m.turn)
		for _, e := range events {
			p.Line("- %s: %s", e.Name, script.OneLine(e.Description))
		}
	}
	p.Heading(standinTurn+": what follows", m.turn, g.Turns)
	if g.Parallel {
		p.Line("All actions happen at one moment: none comes before another, and where they collide, both meet the other half done.")
	} else {
		p.Line("Let actions happen in the order that is most plausible.")
	}
	if swan {
		p.Line("Besides, something happens in this turn that nobody foresaw: invent it, fit to this world and grave enough to matter.")
	}
	p.Line("Write the situation after %s, complete, as everybody can know it. What was done in secret and did not come out belongs under hidden, not into the situation.", g.TurnDuration)
	return g.ask(script.Narrator, "update", p, script.UpdateSchema(swan))
}

// summaryCall asks for a summary that includes one more turn.
func (g *game) summaryCall(turn int) world.Call {
	p := &script.Page{}
	p.Line(youAre, "the narrator")
	p.Line("Sum up turns 1 to %d for those taking part, who will no longer read them in full: what was done and said, what it led to, what is still open. Keep names and numbers. Add nothing.", turn)
	return g.ask(script.Narrator, "summary", p, script.SummarySchema())
}
