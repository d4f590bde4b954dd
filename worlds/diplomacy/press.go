package diplomacy

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"parley/world"
	"parley/worlds/diplomacy/rules"
)

// talk plays the rounds of talks before the orders of a movement phase. In a round all players
// write at the same time. A player that wrote nothing and received nothing new is not asked
// again; when no player is left, the talks end.
func (g *game) talk(t *world.Table) {
	speakers := g.writers()
	if len(speakers) < 2 {
		return // there is no one to talk to
	}
	sorted := make([]sortedDrafts, len(speakers))
	t.Fork(len(speakers), func(i int, t *world.Table) {
		p := speakers[i]
		g.prepare(t, p)
		p.returned = ""
		sorted[i] = g.readMessages(p, 1, t.One(g.messageCall(p, 1)))
	})
	g.deliver(t, speakers, sorted)
	for round := 2; round <= g.Rounds; round++ {
		var asked []*player
		var calls []world.Call
		for _, p := range speakers {
			if !p.silent || g.mail.received(g.pos.Phase.String(), round-1, p.power) {
				asked = append(asked, p)
				calls = append(calls, g.messageCall(p, round))
			}
		}
		if len(asked) == 0 {
			return
		}
		sorted := make([]sortedDrafts, len(asked))
		for i, reply := range t.Ask(calls...) {
			sorted[i] = g.readMessages(asked[i], round, reply)
		}
		g.deliver(t, asked, sorted)
	}
}

// messageCall asks for the messages of a round.
func (g *game) messageCall(p *player, round int) world.Call {
	return g.call(p, "message", promptTalk, g.forms.messages, promptContext{round: round, messages: g.pos.Phase.String()})
}

// readMessages reads what a player wrote. A failed call is silence.
func (g *game) readMessages(p *player, round int, reply world.Reply) sortedDrafts {
	answer, ok := decodeAnswer[messagesAnswer](reply)
	if !ok {
		p.stats.Failed["message"]++
	}
	p.wroteMessages = p.wroteMessages || ok
	like := pressMessage{Phase: g.pos.Phase.String(), Round: round, From: p.power}
	s := g.mail.sortDrafts(answer.Messages, like, g.present(), g.Messages)
	var returned []string
	for _, r := range s.refused {
		p.stats.Refused["message: "+r.reason]++
		returned = append(returned, fmt.Sprintf("to %q, %q: %s", r.draft.To, r.draft.Text, r.why))
	}
	p.returned = strings.Join(returned, "; ")
	p.silent = len(s.messages) == 0
	p.stats.Cut += s.cut
	for _, m := range s.messages {
		if m.public() {
			p.stats.Public++
		} else {
			p.stats.Private++
		}
	}
	return s
}

// deliver delivers the messages of a round, in the order of powers.
func (g *game) deliver(t *world.Table, asked []*player, sorted []sortedDrafts) {
	for i, s := range sorted {
		seat := asked[i].seat
		g.mail.deliver(s.messages...)
		for _, m := range s.messages {
			t.Note(noteMessage, seat, messageRecord{Phase: m.Phase, Round: m.Round, To: m.recipient(), Text: m.Text})
		}
		for _, r := range s.refused {
			t.Note(noteRefused, seat, refusedRecord{
				Phase: g.pos.Phase.String(), What: "message", Reason: r.reason, Text: r.draft.To + ": " + r.draft.Text, Why: r.why,
			})
		}
	}
}

// maxMessage is the maximum length of a message, in characters. Longer messages are cut.
const maxMessage = 1200

// toAll is the recipient of public messages.
const toAll = "ALL"

// pressMessage is a message that is delivered. Its text is one line without control characters.
type pressMessage struct {
	Phase string
	Round int
	From  rules.Power
	To    rules.Power // None: everybody
	Text  string
}

// public reports whether everybody may read the message.
func (m pressMessage) public() bool { return m.To == rules.None }

// readableBy reports whether w may read the message.
func (m pressMessage) readableBy(w rules.Power) bool { return m.public() || m.From == w || m.To == w }

// recipient returns the recipient as files write it.
func (m pressMessage) recipient() string {
	if m.public() {
		return toAll
	}
	return m.To.String()
}

// mailbox holds every message of a game, in the order of delivery. It shows a private message only
// to its sender and its recipient. The zero mailbox is empty.
type mailbox struct {
	all []pressMessage
	// open counts the private messages of a power to another since the other last wrote back.
	open [rules.Turkey + 1][rules.Turkey + 1]int
}

// deliver adds messages.
func (m *mailbox) deliver(messages ...pressMessage) {
	m.all = append(m.all, messages...)
	for _, one := range messages {
		if one.public() {
			for w := range powersIn(one.Text).All() {
				m.open[w][one.From] = 0
			}
			continue
		}
		m.open[one.To][one.From] = 0
		m.open[one.From][one.To]++
	}
}

// readableBy returns the messages of a phase that w may read, in order.
func (m *mailbox) readableBy(phase string, w rules.Power) []pressMessage {
	var seen []pressMessage
	for _, one := range m.inPhase(phase) {
		if one.readableBy(w) {
			seen = append(seen, one)
		}
	}
	return seen
}

// inPhase finds the messages of a phase, which are contiguous and usually the last ones.
func (m *mailbox) inPhase(name string) []pressMessage {
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

// received reports whether w received a message of another power in a round of a phase.
func (m *mailbox) received(phase string, round int, w rules.Power) bool {
	for _, one := range m.inPhase(phase) {
		if one.Round == round && one.From != w && one.readableBy(w) {
			return true
		}
	}
	return false
}

// unanswered counts, for each power, the private messages of w since that power last
// wrote to w, or named it before everybody.
func (m *mailbox) unanswered(w rules.Power) [rules.Turkey + 1]int { return m.open[w] }

// powersIn returns the powers that a text names.
func powersIn(text string) rules.Set[rules.Power] {
	var set rules.Set[rules.Power]
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return !unicode.IsLetter(r) }) {
		if w, ok := rules.ParsePower(word); ok {
			set.Add(w)
		}
	}
	return set
}

// repeats reports whether a message repeats an earlier one: to the same recipient since its last
// answer, or to everybody in the same phase.
func (m *mailbox) repeats(next pressMessage) bool {
	words := wordSet(next.Text)
	for _, one := range slices.Backward(m.all) {
		if next.public() && one.Phase != next.Phase || !next.public() && one.From == next.To && one.readableBy(next.From) {
			return false
		}
		if one.From == next.From && one.To == next.To && alike(words, wordSet(one.Text)) {
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

func wordSet(text string) map[string]bool {
	words := map[string]bool{}
	for w := range strings.FieldsFuncSeq(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		words[w] = true
	}
	return words
}

// messageDraft is a message as a player wrote it, with an unchecked recipient.
type messageDraft struct {
	To   string `json:"to"`
	Text string `json:"text"`
}

// refusedDraft is a draft that is not delivered: with a reason to count by, and an explanation for
// its writer.
type refusedDraft struct {
	draft  messageDraft
	reason string // recipient, empty, repeated, too many
	why    string
}

// sortedDrafts is the result of the drafts of one power in one round.
type sortedDrafts struct {
	messages []pressMessage
	refused  []refusedDraft
	cut      int // messages that were too long
}

// sortDrafts makes at most limit messages from drafts. Each is like the given message, with its own
// recipient and text. A draft for several powers becomes a message to each. A draft for an unknown
// power, or for one that is not present, is refused.
func (m *mailbox) sortDrafts(drafts []messageDraft, like pressMessage, present rules.Set[rules.Power], limit int) sortedDrafts {
	var s sortedDrafts
	refuse := func(d messageDraft, reason, format string, args ...any) {
		d.To, d.Text = oneLine(d.To, 60), oneLine(d.Text, 60)
		s.refused = append(s.refused, refusedDraft{d, reason, fmt.Sprintf(format, args...)})
	}
	for _, d := range drafts {
		text := oneLine(d.Text, maxMessage)
		if text == "" {
			refuse(d, "empty", "it is empty")
			continue
		}
		to, why := recipients(d.To, like.From, present)
		if why != "" {
			refuse(d, "recipient", "%s", why)
			continue
		}
		for _, w := range to {
			next := like
			next.To, next.Text = w, text
			switch {
			case len(s.messages) == limit:
				refuse(d, "too many", "at most %d messages are delivered in a round", limit)
			case m.repeats(next) || (&mailbox{all: s.messages}).repeats(next):
				refuse(d, "repeated", "you have said the same, and it was not answered")
			default:
				s.messages = append(s.messages, next)
				if len(text) < len(strings.TrimSpace(d.Text)) && strings.HasSuffix(text, "…") {
					s.cut++
				}
			}
		}
	}
	return s
}

// recipients reads the recipients of a draft: everybody, a power, or several.
func recipients(to string, from rules.Power, present rules.Set[rules.Power]) (list []rules.Power, why string) {
	switch strings.ToLower(strings.TrimSpace(to)) {
	case "all", "global", "everyone", "everybody", "public", "all powers":
		return []rules.Power{rules.None}, ""
	}
	for part := range strings.SplitSeq(strings.ReplaceAll(to, " and ", ","), ",") {
		w, ok := rules.ParsePower(part)
		switch {
		case strings.TrimSpace(part) == "" && len(list) > 0:
			continue
		case !ok:
			return nil, fmt.Sprintf("there is no power %q", oneLine(part, 30))
		case w == from:
			return nil, "it is for yourself"
		case !present.Has(w):
			return nil, w.Name() + " is out of the game"
		}
		list = append(list, w)
	}
	return list, ""
}

// oneLine makes a text one line of at most limit characters, with single spaces instead of
// characters that cannot be printed.
func oneLine(text string, limit int) string {
	var b strings.Builder
	n, space := 0, false
	for _, r := range text {
		if r == unicode.ReplacementChar || unicode.IsSpace(r) || !unicode.IsGraphic(r) {
			space = b.Len() > 0
			continue
		}
		if n += 1; space {
			n++
		}
		if n > limit {
			return b.String() + "…"
		}
		if space {
			b.WriteByte(' ')
			space = false
		}
		b.WriteRune(r)
	}
	return b.String()
}
