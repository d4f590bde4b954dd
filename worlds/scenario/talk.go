package scenario

import (
	"slices"

	"parley/world"
	"parley/worlds/scenario/script"
)

// exchange is what two actors say to each other in a turn.
type exchange struct {
	between [2]int // actors, the smaller index first
	lines   []saying
}

// pact is a coalition that was proposed.
type pact struct {
	proposer int
	members  []int // all of them, in order
	purpose  string
	answers  []answer
	formed   bool
	// agreed is for members, and statement for everybody.
	agreed, statement string
}

// answer is the answer of an actor that was invited to a coalition.
type answer struct {
	who     int
	accepts bool
	text    string
}

// talk asks all actors for their opening at the same moment, and then plays each exchange and each
// coalition in its own strand.
func (g *game) talk(t *world.Table, m *moves) {
	calls := make([]world.Call, len(g.cast))
	for i := range g.cast {
		calls[i] = g.openingCall(i)
	}
	for i, r := range t.Ask(calls...) {
		g.opened(m, i, script.ReadOpening(r))
	}
	exchanges := len(m.exchanges)
	t.Fork(exchanges+len(m.pacts), func(i int, t *world.Table) {
		if i < exchanges {
			g.speak(t, m, &m.exchanges[i])
		} else {
			g.join(t, m, &m.pacts[i-exchanges])
		}
	})
}

// opened adds the opening of an actor. It leaves out messages to unknown actors, to itself or twice to the
// same actor, and messages beyond the limit.
func (g *game) opened(m *moves, who int, o script.Opening) {
	if g.Talk.Statements && o.Statement != "" {
		m.statements = append(m.statements, saying{who, o.Statement})
	}
	limit := g.Talk.Max
	if g.Talk.Coalitions {
		if p, ok := g.proposed(m, who, o); ok {
			m.pacts = append(m.pacts, p)
			limit--
		}
	}
	if !g.Talk.Bilateral {
		return
	}
	var to []int
	for _, msg := range o.Messages {
		other := g.Actor(msg.To)
		if len(to) >= limit || other < 0 || other == who || msg.Text == "" || slices.Contains(to, other) {
			continue
		}
		to = append(to, other)
		m.add([2]int{min(who, other), max(who, other)}, saying{who, msg.Text})
	}
}

// add adds a first line to the exchange of two actors. There is one exchange, whoever began it.
func (m *moves) add(between [2]int, line saying) {
	for i := range m.exchanges {
		if m.exchanges[i].between == between {
			m.exchanges[i].lines = append(m.exchanges[i].lines, line)
			return
		}
	}
	m.exchanges = append(m.exchanges, exchange{between: between, lines: []saying{line}})
}

// proposed returns the coalition of a proposal: the proposer and two or more others. It is not ok if
// a coalition of the same members was already proposed.
func (g *game) proposed(m *moves, who int, o script.Opening) (pact, bool) {
	p := pact{proposer: who, members: []int{who}, purpose: o.Coalition.Purpose}
	for _, short := range o.Coalition.Members {
		if other := g.Actor(short); other >= 0 && !slices.Contains(p.members, other) {
			p.members = append(p.members, other)
		}
	}
	slices.Sort(p.members)
	same := func(q pact) bool { return slices.Equal(q.members, p.members) }
	return p, len(p.members) >= 3 && p.purpose != "" && !slices.ContainsFunc(m.pacts, same)
}

// speak plays the exchange of two actors: an actor that gets a message answers, for a number of rounds
// or until both are silent.
func (g *game) speak(t *world.Table, m *moves, x *exchange) {
	last := x.lines
	for range g.Talk.Rounds {
		var calls []world.Call
		var who []int
		for _, line := range last {
			other := x.other(line.who)
			who = append(who, other)
			calls = append(calls, g.answerCall(m, x, other))
		}
		before := len(x.lines)
		for i, r := range t.Ask(calls...) {
			if text := script.ReadText(r, "reply"); text != "" {
				x.lines = append(x.lines, saying{who[i], text})
			}
		}
		if last = x.lines[before:]; len(last) == 0 {
			return
		}
	}
}

func (x *exchange) other(who int) int { return x.between[0] + x.between[1] - who }

// join asks all invited actors at once. If all accept, the proposer writes
// what they agreed on and what they say together.
func (g *game) join(t *world.Table, m *moves, p *pact) {
	var calls []world.Call
	for _, who := range p.members {
		if who != p.proposer {
			calls = append(calls, g.inviteCall(m, p, who))
			p.answers = append(p.answers, answer{who: who})
		}
	}
	p.formed = true
	for i, r := range t.Ask(calls...) {
		a := script.ReadInvite(r)
		p.answers[i].accepts, p.answers[i].text = a.Accept, a.Answer
		p.formed = p.formed && a.Accept
	}
	if !p.formed {
		return
	}
	j := script.ReadJoint(t.One(g.jointCall(m, p)))
	p.agreed, p.statement = j.Agreement, j.Statement
}

// noteTalk notes who said what to whom.
func (g *game) noteTalk(t *world.Table, m moves) {
	for _, s := range m.statements {
		t.Note("statement", g.cast[s.who].ShortName, statementNote{Turn: m.turn, Text: s.text})
		g.conduct[s.who].Statements++
	}
	for _, x := range m.exchanges {
		for _, line := range x.lines {
			to := g.cast[x.other(line.who)].ShortName
			t.Note("message", g.cast[line.who].ShortName, messageNote{Turn: m.turn, To: to, Text: line.text})
			g.conduct[line.who].Wrote[to]++
		}
	}
	for _, p := range m.pacts {
		c := coalitionNote{Turn: m.turn, Purpose: p.purpose, Formed: p.formed, Agreed: p.agreed, Statement: p.statement}
		for _, who := range p.members {
			c.Members = append(c.Members, g.cast[who].ShortName)
		}
		for _, a := range p.answers {
			c.Answers = append(c.Answers, coalitionAnswer{Actor: g.cast[a.who].ShortName, Accepts: a.accepts, Text: a.text})
		}
		t.Note("coalition", g.cast[p.proposer].ShortName, c)
		g.proposals = append(g.proposals, proposedCoalition{Turn: m.turn, Members: c.Members, Formed: c.Formed})
	}
}

// others lists the short names of all actors except one.
func (g *game) others(who int) []string {
	var all []string
	for i, a := range g.cast {
		if i != who {
			all = append(all, a.ShortName)
		}
	}
	return all
}
