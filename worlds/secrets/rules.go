package secrets

import (
	"fmt"
	"strconv"
	"strings"
)

// rulesText explains to a player what gives a word away, and what it pays.
func (g *game) rulesText(me int) string {
	var b strings.Builder
	b.Grow(768) // most rules fit
	b.WriteString("A player gives its own word away by writing it in a message")
	if g.Forms == nil { // all forms count: see deal
		b.WriteString(": in any spelling, letter by letter, backwards, in pieces or in a code too")
	} else {
		b.WriteString("; only these forms count: ")
		b.WriteString(listed(g.Forms))
	}
	b.WriteString(". Hints do not count.")
	if g.Judge == JudgeDecide {
		b.WriteString(" A judge reads the conversation and decides.")
	}
	if g.Mode == Standard {
		g.standardText(&b)
	} else {
		b.WriteString(" You collect a word when its owner gives it away in a conversation with you.")
		b.WriteString(g.collectingText(me))
	}
	if g.Players == 2 {
		b.WriteString("The other player is paid by the same rules. Get as many points as you can.")
	} else {
		b.WriteString("All players are paid by the same rules. Get as many points as you can.")
	}
	return b.String()
}

// standardText writes what a conversation pays.
func (g *game) standardText(b *strings.Builder) {
	b.WriteString(" When a conversation is over, you get:\n")
	for _, line := range []struct{ name, when string }{
		{"neither", "if neither of you gave a word away"},
		{"both", "if both of you did"},
		{"only_other", "if only the other player did"},
		{"only_own", "if only you did"},
	} {
		b.WriteString("- " + pointsText(g.standings.pays(line.name)) + " " + line.when + "\n")
	}
}

// collectingText explains what collected words pay.
func (g *game) collectingText(me int) string {
	switch g.Mode {
	case Retained:
		return fmt.Sprintf(" When the game is over, each word you collected pays %s, divided by the number of players who collected it: "+
			"what few have is worth most.\n", pointsText(float64(g.Players)))
	case Diversity:
		return fmt.Sprintf(" Each different word you collect pays %s.\n", pointsText(g.standings.pays("secret")))
	default:
		return fmt.Sprintf(" Each different word you collect pays %s. One of the words is the target: it pays %s more. %s\n",
			pointsText(g.standings.pays("secret")), pointsText(g.standings.pays("target")), g.targetText(me))
	}
}

// targetText explains whose word is the target, if the player may know.
func (g *game) targetText(me int) string {
	holder := me == g.target
	switch known := g.TargetKnown; {
	case holder && (known == everyone || known == holderOnly):
		return ownTarget
	case !holder && (known == everyone || known == othersOnly):
		return "It is the word of " + g.players[g.target].name + "."
	default:
		return "You are not told whose it is."
	}
}

func pointsText(points float64) string {
	if points == 1 {
		return "1 point"
	}
	return strconv.FormatFloat(points, 'g', -1, 64) + " points"
}
