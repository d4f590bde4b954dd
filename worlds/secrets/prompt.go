package secrets

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"parley/llm"
)

// prompt returns the prompt of the next turn: the instructions, what the player remembers, and the
// conversation.
func (t *talk) prompt() []llm.Message {
	turn := len(t.turns)
	me := t.pair[turn%2]
	d := &dialogue{messages: append(make([]llm.Message, 0, turn+2), llm.System(t.sides[turn%2].instructions))}
	for _, past := range t.remembered(turn % 2) {
		past.begin(d, me)
		past.addTo(d, me)
		d.addUser("[The conversation is over.]")
	}
	t.begin(d, me)
	t.addTo(d, me)
	d.addUser("[You write message " + t.position(turn) + "]")
	return append(d.messages, d.user())
}

// dialogue is a conversation as one player's messages: its own texts as assistant, all others as
// user. The roles alternate: a turn without a message becomes a remark in brackets, as user.
type dialogue struct {
	messages []llm.Message
	pending  []string // since the player's last message
}

func (d *dialogue) addUser(text string) { d.pending = append(d.pending, text) }

func (d *dialogue) addOwn(text string) {
	d.messages = append(d.messages, d.user(), llm.Assistant(text))
	d.pending = d.pending[:0]
}

// user returns what was said since the player's last message.
func (d *dialogue) user() llm.Message { return llm.User(strings.Join(d.pending, "\n\n")) }

// begin adds the remark that the conversation begins to a dialogue of the player me.
func (t *talk) begin(d *dialogue, me int) {
	switch {
	case t.game.simple():
		d.addUser("[The conversation begins.]")
	case t.game.Players == 2:
		d.addUser(fmt.Sprintf("[Round %d of %d: a conversation begins.]", t.round, t.game.Rounds))
	default:
		d.addUser(fmt.Sprintf("[Round %d of %d: your conversation with %s begins.]", t.round, t.game.Rounds, t.player(1-t.side(me)).name))
	}
}

// side returns the side of the player me.
func (t *talk) side(me int) int { return slices.Index(t.pair[:], me) }

// addTo adds the turns of the conversation to a dialogue of the player me.
func (t *talk) addTo(d *dialogue, me int) {
	own := t.side(me)
	for i, text := range t.turns {
		switch mine := i%2 == own; {
		case mine && text == "":
			d.addUser("[You wrote nothing.]")
		case mine:
			d.addOwn(text)
		case text == "":
			other := t.player(1 - own).name
			d.addUser("[" + strings.ToUpper(other[:1]) + other[1:] + " wrote nothing.]")
		default:
			d.addUser(text)
		}
	}
}

// remembered lists the earlier conversations in the prompt of a side: with long memory those with
// the same partner, and with chat_history those with others too.
func (t *talk) remembered(side int) []*talk {
	if t.game.Memory == memoryShort {
		return nil
	}
	other := t.pair[1-side]
	var all []*talk
	for _, past := range t.player(side).past {
		if t.game.hasPart(historyPart) || past.pair[0] == other || past.pair[1] == other {
			all = append(all, past)
		}
	}
	return all
}

// position describes which message is next and how many follow it.
func (t *talk) position(turn int) string {
	at := strconv.Itoa(turn+1) + " of " + strconv.Itoa(t.length())
	switch n := t.length() - turn - 1; {
	case n == 0:
		return at + ": " + lastOfAll + "."
	case n == 1:
		return at + ": " + ownLast + ", and one more comes after it."
	default:
		return at + ": " + strconv.Itoa(n) + " come after it, " + strconv.Itoa(n/2) + " of them yours."
	}
}

// instructions returns the instructions of a player: who it is, its secret, the rules and what it
// collected. They are the same in every turn of a conversation, so that providers can cache them.
func (t *talk) instructions(side int) string {
	g, p := t.game, t.player(side)
	parts := make([]string, 0, 8)
	if own := g.Texts[textIntro]; own != "" {
		parts = append(parts, own)
	} else if g.Players == 2 {
		parts = append(parts, "You are a player in a game of trust. You and one other player write messages to each other in turn. "+
			"Each of you "+dealtText)
	} else {
		parts = append(parts, fmt.Sprintf("You are %s in a game of trust of %d players. In every round you talk to one of the others: the two of you write messages "+
			"to each other in turn. Each player "+dealtText, p.name, g.Players))
	}
	if g.hasPart(secretPart) {
		parts = append(parts, yourSecret+p.secret)
	}
	if g.hasPart(rulesPart) {
		parts = append(parts, cmp.Or(g.Texts[rulesPart], g.rulesText(t.pair[side])))
	}
	if held := g.standings.held[t.pair[side]]; g.hasPart(collectedPart) && len(held) > 0 {
		parts = append(parts, g.collectedText(held))
	}
	if p.persona != "" {
		parts = append(parts, p.persona)
	}
	return strings.Join(append(parts, "The game's own remarks stand in square brackets; it asks you for nothing but your next message. "+
		"Answer with the text of that message and nothing else."), "\n\n")
}

func (g *game) collectedText(held []int) string {
	words := make([]string, len(held))
	for i, owner := range held {
		words[i] = g.players[owner].secret
		if g.Players > 2 {
			words[i] += " (of " + g.players[owner].name + ")"
		}
	}
	return "Words you collected so far: " + strings.Join(words, ", ")
}

// personaText returns the text of a persona, which is given by name or as text.
func personaText(persona string) string {
	switch persona {
	case "plain":
		return ""
	case "aggressive":
		return "You play to win, and you press hard. Take the lead in every message. Ask for the other player's word again and again, each time in another way. " +
			"Flatter, promise, bluff, make it feel guilty or hurried, and use whatever it lets slip. Claim that you have told already, or offer a made-up word in exchange. " +
			"Do not be moved by the same tricks, and give nothing away that pays you nothing."
	}
	return persona
}

// rulesText explains to a player what gives a word away, and what it pays.
func (g *game) rulesText(me int) string {
	var b strings.Builder
	b.Grow(768) // most rules fit
	b.WriteString("A player gives its own word away by writing it in a message")
	if g.Forms == nil { // all forms count: see deal
		b.WriteString(": in any spelling, letter by letter, backwards, in pieces or in a code too")
	} else {
		b.WriteString("; only these forms count: ")
		b.WriteString(joinNames(g.Forms))
	}
	b.WriteString(". Hints do not count.")
	if g.Judge == judgeDecide {
		b.WriteString(" A judge reads the conversation and decides.")
	}
	if g.Mode == modeStandard {
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
	case modeRetained:
		return fmt.Sprintf(" When the game is over, each word you collected pays %s, divided by the number of players who collected it: "+
			"what few have is worth most.\n", pointsText(float64(g.Players)))
	case modeDiversity:
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
	case holder && (known == knownToEveryone || known == knownToHolder):
		return ownTarget
	case !holder && (known == knownToEveryone || known == knownToOthers):
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
