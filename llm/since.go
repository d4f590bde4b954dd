package llm

import (
	"slices"
	"strings"
)

// Since returns what is new in a request since an earlier one of the same seat, which may be nil: the messages after
// those that both begin with, without the answers of the model and without those that follow in the earlier one too, in the
// same order, and how many both begin with. So a message that is sent a second time is new, but not one that is left of
// a history that lost its beginning, or that lost its last lines, as instructions. If the first new one begins as the message
// in its place did, its first lines are left out and counted.
func (r *Request) Since(before *Request) (fresh []Message, same, lines int) {
	var old []Message
	if before != nil {
		old = before.Messages
	}
	texts := messageTexts{}
	for same < min(len(old), len(r.Messages)) && texts.equal(&old[same], &r.Messages[same]) {
		same++
	}
	rest := old[same:] // what may still be repeated
	for i, m := range r.Messages[same:] {
		if m.Role == RoleAssistant && len(old) > 0 {
			continue
		}
		if at := slices.IndexFunc(rest, func(o Message) bool { return texts.repeats(&m, &o) }); at >= 0 {
			rest = rest[at+1:]
			continue
		}
		if at := same + i; i == 0 && at < len(old) && old[at].Role == m.Role {
			if rest, n := sinceLine(texts.of(&old[at]), texts.of(&m)); n > 0 {
				m, lines = Message{Role: m.Role, Parts: []Part{{Text: rest}}}, n
			}
		}
		fresh = append(fresh, m)
	}
	return fresh, same, lines
}

// messageTexts has the texts of messages. A run file gives equal messages the same parts: their text is made once.
type messageTexts map[messageParts]string

// messageParts identifies the parts and tool calls of a message.
type messageParts struct {
	part         *Part
	call         *ToolCall
	parts, calls int
}

// of returns MessageText of m.
func (t messageTexts) of(m *Message) string {
	key := messageParts{parts: len(m.Parts), calls: len(m.ToolCalls)}
	if key.parts > 0 {
		key.part = &m.Parts[0]
	}
	if key.calls > 0 {
		key.call = &m.ToolCalls[0]
	}
	text, ok := t[key]
	if !ok {
		text = m.Words()
		t[key] = text
	}
	return text
}

func (t messageTexts) equal(a, b *Message) bool { return a.Role == b.Role && t.of(a) == t.of(b) }

// repeats reports whether a message is another one, with all of its lines or only the first of them.
func (t messageTexts) repeats(m, other *Message) bool {
	if m.Role != other.Role {
		return false
	}
	rest, ok := strings.CutPrefix(t.of(other), t.of(m))
	return ok && (rest == "" || rest[0] == '\n')
}

// minSame is how many equal lines are left out: fewer are read faster than the words about them.
const minSame = 5

// sinceLine returns a text without the lines that it begins with as another text does, and how many these are.
func sinceLine(before, now string) (rest string, lines int) {
	rest = now
	for {
		a, more, ok := strings.Cut(before, "\n")
		b, left, ok2 := strings.Cut(rest, "\n")
		if a != b || !ok || !ok2 {
			break
		}
		before, rest, lines = more, left, lines+1
	}
	if lines < minSame {
		return now, 0
	}
	return rest, lines
}
