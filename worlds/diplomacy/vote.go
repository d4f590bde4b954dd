package diplomacy

import (
	"slices"
	"strings"

	"parley/worlds/diplomacy/rules"
)

// The votes, besides a power to concede to.
const (
	voteContinue = "PLAY_ON"
	voteDraw     = "DRAW"
)

// voting reports whether players vote with the orders of this phase.
func (g *game) voting() bool {
	return g.DrawFrom > 0 && g.pos.Phase.Year >= g.DrawFrom && g.pos.Phase.Step == rules.Movement
}

func (g *game) voteText(p *player) string {
	if !g.voting() || p.bot {
		return ""
	}
	return "Vote too: " + voteContinue + "; " + voteDraw + ", which ends the game now as a draw of all who are left, if all of them vote for it; " +
		"or the name of a power, which concedes the game to it, if all others do."
}

// agreed ends the game if all voters voted for the same end. Then the orders of the phase are
// not carried out. Bots do not vote, and a power that did not answer votes to continue.
func (g *game) agreed() bool {
	voters := slices.DeleteFunc(g.writers(), func(p *player) bool { return g.pos.Count(p.power) == 0 }) // a power without units is not asked
	if !g.voting() || len(voters) == 0 {
		return false
	}
	draw := true
	for _, p := range voters {
		draw = draw && strings.EqualFold(strings.TrimSpace(p.vote), voteDraw)
	}
	if draw {
		var all []rules.Power
		for _, p := range g.alive() {
			all = append(all, p.power)
		}
		g.ends(recordDraw, all...)
	} else if to := g.conceded(voters); to != rules.None {
		g.ends(concession, to)
	} else {
		return false
	}
	for _, p := range voters {
		g.end.Votes = put(g.end.Votes, p.seat, p.vote)
	}
	return true
}

// conceded returns the power that all other voters voted for, or None.
func (g *game) conceded(voters []*player) rules.Power {
	for _, winner := range g.alive() {
		others := 0
		for _, p := range voters {
			if p == winner {
				continue // its own vote does not count
			}
			if w, ok := rules.ParsePower(p.vote); !ok || w != winner.power {
				others = 0
				break
			}
			others++
		}
		if others > 0 {
			return winner.power
		}
	}
	return rules.None
}
