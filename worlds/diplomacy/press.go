// Part press holds the messages of a game of Diplomacy: who wrote what to whom, who can
// read it, which messages repeat others and which were not answered.
//
// Only the sender and the recipient of a private message can read it. A message to an unknown
// recipient is never delivered. A text is one line without control characters.

package diplomacy

import (
	"slices"
	"strings"
	"unicode"

	"parley/worlds/diplomacy/rules"
)

// MaxText is the maximum length of a message, in characters. Longer messages are cut.
const MaxText = 1200

// pressAll is the recipient of public messages.
const pressAll = "ALL"

// pressMessage is a message of a power.
type pressMessage struct {
	Phase string
	Round int
	From  rules.Power
	To    rules.Power // None: everybody
	Text  string
}

// Public reports whether everybody may read the message.
func (m pressMessage) Public() bool { return m.To == rules.None }

// Seen reports whether w may read the message.
func (m pressMessage) Seen(w rules.Power) bool { return m.Public() || m.From == w || m.To == w }

// Recipient returns the recipient as files write it.
func (m pressMessage) Recipient() string {
	if m.Public() {
		return pressAll
	}
	return m.To.String()
}

// pressMail is every message of a game, in the order of delivery. The zero pressMail is empty.
type pressMail struct {
	all []pressMessage
	// open counts the private messages of a power to another since the other last wrote back.
	open [rules.Turkey + 1][rules.Turkey + 1]int
}

// Deliver adds messages.
func (m *pressMail) Deliver(messages ...pressMessage) {
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
func (m *pressMail) Of(phase string, w rules.Power) []pressMessage {
	var seen []pressMessage
	for _, one := range m.phase(phase) {
		if one.Seen(w) {
			seen = append(seen, one)
		}
	}
	return seen
}

// All are the messages of a phase, the player who may read them: for judges and readers.
func (m *pressMail) All(phase string) []pressMessage { return m.phase(phase) }

// phase finds the messages of a phase, which are contiguous and usually the last ones.
func (m *pressMail) phase(name string) []pressMessage {
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
func (m *pressMail) Heard(phase string, round int, w rules.Power) bool {
	for _, one := range m.phase(phase) {
		if one.Round == round && one.From != w && one.Seen(w) {
			return true
		}
	}
	return false
}

// Unanswered counts, for each power, the private messages of w since that power last
// wrote to w, or named it before everybody.
func (m *pressMail) Unanswered(w rules.Power) [rules.Turkey + 1]int { return m.open[w] }

// named are the powers that a text names.
func named(text string) rules.Set[rules.Power] {
	var set rules.Set[rules.Power]
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return !unicode.IsLetter(r) }) {
		if w, ok := rules.ParsePower(word); ok {
			set.Add(w)
		}
	}
	return set
}

// Repeats reports whether a message repeats an earlier one: to the same recipient since its last
// answer, or to everybody in the same phase.
func (m *pressMail) Repeats(next pressMessage) bool {
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
