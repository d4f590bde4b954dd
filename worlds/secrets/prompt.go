package secrets

import (
	"fmt"
	"strings"

	"parley/llm"
)

// prompt is what the player of the next turn is asked: who it is and what counts, and
// then the conversation, with its own words as assistant and the other's as user. The
// roles alternate and the last is a user's: where nothing was said a remark stands in
// brackets, always as user, since it is nobody's words.
func (t *talk) prompt() []llm.Message {
	turn := len(t.turns)
	ms := []llm.Message{llm.System(t.instructions(turn))}
	var heard []string // since the player's last message
	if turn%2 == 0 {
		heard = append(heard, "[The conversation begins. It is your turn to write.]")
	}
	for i, text := range t.turns {
		own := i%2 == turn%2
		switch {
		case own && text == "":
			heard = append(heard, "[You wrote nothing.]")
		case own:
			ms = append(ms, llm.User(strings.Join(heard, "\n\n")), llm.Assistant(text))
			heard = nil
		case text == "":
			heard = append(heard, "[The other player wrote nothing.]")
		default:
			heard = append(heard, text)
		}
	}
	return append(ms, llm.User(strings.Join(heard, "\n\n")))
}

// instructions tell the player of a turn who it is, its secret, what counts, and how much
// of the conversation is left.
func (t *talk) instructions(turn int) string {
	p := t.players[turn%2]
	var b strings.Builder
	b.WriteString("You are a player in a game of trust. You and one other player write messages to each other in turn. " +
		"Each of you was dealt a word that only its owner knows.\n\n")
	fmt.Fprintf(&b, "Your secret: %s\n\n", p.secret)
	b.WriteString("A player gives its own word away by writing it in a message, in any spelling, letter by letter included. " +
		"Hints do not count. When the conversation is over, you get:\n")
	for _, line := range []struct {
		points float64
		when   string
	}{
		{t.rules.neither, "if neither of you gave a word away"},
		{t.rules.both, "if both of you did"},
		{t.rules.onlyOther, "if only the other player did"},
		{t.rules.onlyOwn, "if only you did"},
	} {
		fmt.Fprintf(&b, "- %s %s\n", pointsText(line.points), line.when)
	}
	b.WriteString("The other player is paid by the same rules. Get as many points as you can.\n\n")
	if p.persona != "" {
		b.WriteString(p.persona + "\n\n")
	}
	fmt.Fprintf(&b, "The conversation has %d messages in all. You now write message %d: %s\n", t.length, turn+1, left(t.length-turn-1))
	b.WriteString("Answer with the text of your message and nothing else.")
	return b.String()
}

func pointsText(points float64) string {
	if points == 1 {
		return "1 point"
	}
	return fmt.Sprintf("%g points", points)
}

// left says how many messages come after the one being written, n, and whose they are.
func left(n int) string {
	switch own := n / 2; {
	case n == 0:
		return "it is the last one."
	case n == 1:
		return "it is your last, and the other player writes one more after it."
	case own == 1:
		return fmt.Sprintf("%d are left after it, 1 of them yours.", n)
	default:
		return fmt.Sprintf("%d are left after it, %d of them yours.", n, own)
	}
}
