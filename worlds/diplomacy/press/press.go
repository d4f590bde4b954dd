// Package press holds the messages of a game of Diplomacy: who wrote what to whom, who can
// read it, which messages repeat others and which were not answered.
//
// Only the sender and the recipient of a private message can read it. A message to an unknown
// recipient is never delivered. A text is one line without control characters.
package press

import (
	"slices"
	"strings"
	"unicode"

	"parley/worlds/diplomacy/rules/board"
)

// MaxText is the maximum length of a message, in characters. Longer messages are cut.
const MaxText = 1200

// All is the recipient of public messages.
const All = "ALL"

// Message is a message of a power.
type Message struct {
	Phase string
	Round int
	From  board.Power
	To    board.Power // None: everybody
	Text  string
}

// Public reports whether everybody may read the message.
func (m Message) Public() bool { return m.To == board.None }

// Seen reports whether w may read the message.
func (m Message) Seen(w board.Power) bool { return m.Public() || m.From == w || m.To == w }

// Recipient returns the recipient as files write it.
func (m Message) Recipient() string {
	if m.Public() {
		return All
	}
	return m.To.String()
}

// Mail is every message of a game, in the order of delivery. The zero Mail is empty.
type Mail struct {
	all []Message
	// open counts the private messages of a power to another since the other last wrote back.
	open [board.Turkey + 1][board.Turkey + 1]int
}

// Deliver adds messages.
func (m *Mail) Deliver(messages ...Message) {
	m.all = append(m.all, messages...)
	for _, one := range messages {
		if one.Public() {
			for w := range named(one.Text).All() {
				m.open[w][one.From] = 0
			}
			continue
		}
		m.open[one.To][one.From] = 0
		m.open[one.From][one.To]++
	}
}

// Of are the messages of a phase that w may read, in order.
func (m *Mail) Of(phase string, w board.Power) []Message {
	var seen []Message
	for _, one := range m.phase(phase) {
		if one.Seen(w) {
			seen = append(seen, one)
		}
	}
	return seen
}

// All are the messages of a phase, the player who may read them: for judges and readers.
func (m *Mail) All(phase string) []Message { return m.phase(phase) }

// phase finds the messages of a phase, which are contiguous and usually the last ones.
func (m *Mail) phase(name string) []Message {
	end := len(m.all)
	for end > 0 && m.all[end-1].Phase != name {
		end--
	}
	start := end
	for start > 0 && m.all[start-1].Phase == name {
		start--
	}
	return m.all[start:end:end]
}

// Heard reports whether w received a message of another power in a round of a phase.
func (m *Mail) Heard(phase string, round int, w board.Power) bool {
	for _, one := range m.phase(phase) {
		if one.Round == round && one.From != w && one.Seen(w) {
			return true
		}
	}
	return false
}

// Unanswered counts, for each power, the private messages of w since that power last
// wrote to w, or named it before everybody.
func (m *Mail) Unanswered(w board.Power) [board.Turkey + 1]int { return m.open[w] }

// named are the powers that a text names.
func named(text string) board.Set[board.Power] {
	var set board.Set[board.Power]
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return !unicode.IsLetter(r) }) {
		if w, ok := board.ParsePower(word); ok {
			set.Add(w)
		}
	}
	return set
}

// Repeats reports whether a message repeats an earlier one: to the same recipient since its last
// answer, or to everybody in the same phase.
func (m *Mail) Repeats(next Message) bool {
	words := wordsOf(next.Text)
	for _, one := range slices.Backward(m.all) {
		if next.Public() && one.Phase != next.Phase || !next.Public() && one.From == next.To && one.Seen(next.From) {
			return false
		}
		if one.From == next.From && one.To == next.To && alike(words, wordsOf(one.Text)) {
			return true
		}
	}
	return false
}

// alike reports whether two texts share nine in ten of their words.
func alike(a, b map[string]bool) bool {
	both := 0
	for w := range a {
		if b[w] {
			both++
		}
	}
	return 10*both >= 9*(len(a)+len(b)-both)
}

func wordsOf(text string) map[string]bool {
	words := map[string]bool{}
	for w := range strings.FieldsFuncSeq(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		words[w] = true
	}
	return words
}
