package diplomacy

import (
	"fmt"
	"strings"

	"parley/llm"
	"parley/world"
	"parley/worlds/diplomacy/rules"
)

// moment holds what a prompt depends on besides the game and the player.
type moment struct {
	round    int
	messages string                    // the phase whose messages it shows
	only     rules.Set[rules.Province] // provinces that still need orders; empty: all
	wrong    string
	entries  string
}

// call returns a question to a player: first the text that all players share, then its own.
func (g *game) call(p *player, label, template string, form *llm.Schema, m moment) world.Call {
	value := g.values(p, m)
	own := p.set.Fill(self, value) + "\n\n" + p.set.Fill(template, value)
	return world.Call{Seat: p.seat, Label: label, Ask: llm.Request{
		Messages: []llm.Message{llm.System(p.shared), llm.User(own)}, Prefix: 1, Schema: form,
	}}
}

// values returns the values of template variables.
func (g *game) values(p *player, m moment) func(string) string {
	return func(name string) string {
		switch name {
		case "power":
			return p.power.Name()
		case "phase":
			ph := g.pos.Phase
			return fmt.Sprintf("%s (%s %d, %s)", ph, ph.Season, ph.Year, ph.Step)
		case "scoring":
			return scoringText(g.Scoring)
		case "end":
			return fmt.Sprintf("The last phase is %s.", g.until)
		case "position":
			return g.brief.Board()
		case "last_phase":
			return g.last.phase
		case "last":
			return g.last.text
		case "options":
			if m.only.Empty() {
				return p.options
			}
			return g.brief.Options(p.power, m.only)
		case "round":
			return fmt.Sprint(m.round)
		case "rounds":
			return fmt.Sprint(g.Rounds)
		case "max_messages":
			return fmt.Sprint(g.Messages)
		case "wrong":
			return m.wrong
		case "entries":
			return m.entries
		}
		return g.own(p, m, name)
	}
}

// own returns the values that only the player knows.
func (g *game) own(p *player, m moment, name string) string {
	switch name {
	case "goals":
		return bullets(p.goals)
	case "relations":
		if !p.started || !g.Diary {
			return ""
		}
		return p.relations.text(p.power, g.present())
	case "diary":
		return p.diary.text()
	case "summary":
		return p.diary.years
	case "plan":
		return p.plan
	case "messages":
		return messageLines(p.power, g.mail.Of(m.messages, p.power))
	case "unanswered":
		return g.unanswered(p)
	case "returned":
		return p.returned
	case "vote":
		return g.voteText(p)
	case "changes":
		return p.changes
	}
	return ""
}

func bullets(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	return "- " + strings.Join(lines, "\n- ")
}

// messageLines writes messages as w reads them, a line each. None is an observer.
func messageLines(w rules.Power, messages []pressMessage) string {
	lines := make([]string, len(messages))
	for i, m := range messages {
		from, to := m.From.Name(), m.To.Name()
		if m.From == w {
			from = "you"
		}
		switch {
		case m.Public():
			to = "all"
		case m.To == w:
			to = "you"
		}
		lines[i] = fmt.Sprintf(standinLine, from, to, m.Text)
	}
	return strings.Join(lines, "\n")
}

// unanswered lists the powers that have not answered p.
func (g *game) unanswered(p *player) string {
	open := g.mail.Unanswered(p.power)
	var list []string
	for _, other := range g.alive() {
		if n := open[other.power]; n > 0 {
			list = append(list, fmt.Sprintf("%s (%d)", other.power.Name(), n))
		}
	}
	return strings.Join(list, ", ")
}
