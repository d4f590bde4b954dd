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
// conversation. Only what was said since the player's last turn is new: the rest of its dialogue
// is kept.
func (t *talk) prompt() []llm.Message {
	turn := len(t.turns)
	me, s := t.pair[turn%2], &t.sides[turn%2]
	d := &s.dialogue
	t.addTo(d, me, s.read)
	s.read = turn
	return d.prompt(t.last(d, turn))
}

// open begins the dialogue of a side, before its first prompt.
func (t *talk) open(side int) {
	d, me := &t.sides[side].dialogue, t.pair[side]
	if d.lines != nil {
		return
	}
	d.lines = append(make([]line, 0, t.length()+1), line{llm.RoleSystem, t.instructions(side)})
	for _, past := range t.remembered(side) {
		past.begin(d, me)
		past.addTo(d, me, 0)
		d.hear("[The conversation is over.]")
	}
	t.begin(d, me)
}

// last returns the last message of a prompt: what was said since the player's last turn, and the remark that it is its turn.
func (t *talk) last(d *dialogue, turn int) string {
	remark := "[You write message " + t.position(turn) + "]"
	return strings.Join(append(slices.Clip(d.heard), remark), "\n\n")
}

// dialogue is a conversation as one player's messages: its own texts as assistant, all others as
// user. The roles alternate: a turn without a message becomes a remark in brackets, as user.
type dialogue struct {
	lines []line
	heard []string // since the player's last message
}

// line is a message of a dialogue. An llm.Message takes four times as much memory, and very many dialogues may be kept.
type line struct {
	role llm.Role
	text string
}

// prompt returns the dialogue as messages, and one more of the user.
func (d *dialogue) prompt(last string) []llm.Message {
	messages, parts := make([]llm.Message, len(d.lines)+1), make([]llm.Part, len(d.lines)+1)
	for i := range messages {
		l := line{llm.RoleUser, last}
		if i < len(d.lines) {
			l = d.lines[i]
		}
		messages[i].Role = l.role
		if l.text != "" {
			parts[i].Text = l.text
			messages[i].Parts = parts[i : i+1 : i+1]
		}
	}
	return messages
}

func (d *dialogue) hear(text string) { d.heard = append(d.heard, text) }

func (d *dialogue) say(text string) {
	d.lines = append(d.lines, line{llm.RoleUser, strings.Join(d.heard, "\n\n")}, line{llm.RoleAssistant, text})
	d.heard = nil
}

// begin adds the remark that the conversation begins to a dialogue of the player me.
func (t *talk) begin(d *dialogue, me int) {
	switch {
	case t.game.simple():
		d.hear("[The conversation begins.]")
	case t.game.Players == 2:
		d.hear(fmt.Sprintf("[Round %d of %d: a conversation begins.]", t.round, t.game.Rounds))
	default:
		d.hear(fmt.Sprintf("[Round %d of %d: your conversation with %s begins.]", t.round, t.game.Rounds, t.player(1-t.side(me)).name))
	}
}

// side returns the side of the player me.
func (t *talk) side(me int) int { return slices.Index(t.pair[:], me) }

// addTo adds the turns of the conversation, from one on, to a dialogue of the player me.
func (t *talk) addTo(d *dialogue, me, from int) {
	own := t.side(me)
	for i, text := range t.turns[from:] {
		switch mine := (from+i)%2 == own; {
		case mine && text == "":
			d.hear("[You wrote nothing.]")
		case mine:
			d.say(text)
		case text == "":
			other := t.player(1 - own).name
			d.hear("[" + strings.ToUpper(other[:1]) + other[1:] + " wrote nothing.]")
		default:
			d.hear(text)
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
		if t.game.hasPart(chatHistory) || past.pair[0] == other || past.pair[1] == other {
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
			"Each of you "+standinDealt)
	} else {
		parts = append(parts, fmt.Sprintf("You are %s in a game of trust of %d players. In every round you talk to one of the others: the two of you write messages "+
			"to each other in turn. Each player "+standinDealt, p.name, g.Players))
	}
	if g.hasPart(ownSecret) {
		parts = append(parts, yourSecret+p.secret)
	}
	if g.hasPart(theRules) {
		parts = append(parts, cmp.Or(g.Texts[theRules], g.rulesText(t.pair[side])))
	}
	if held := g.standings.held[t.pair[side]]; g.hasPart(collectedSecrets) && len(held) > 0 {
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
