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
	var old []said
	if before != nil {
		old = saidIn(before.Messages)
	}
	now := saidIn(r.Messages)
	for same < min(len(old), len(now)) && old[same] == now[same] {
		same++
	}
	rest := old[same:] // what may still be repeated
	for at := same; at < len(now); at++ {
		if now[at].role == RoleAssistant && len(old) > 0 {
			continue
		}
		if i := slices.IndexFunc(rest, now[at].begins); i >= 0 {
			rest = rest[i+1:]
			continue
		}
		m := r.Messages[at]
		if at == same && at < len(old) && old[at].role == m.Role {
			if rest, n := sinceLine(old[at].text, now[at].text); n > 0 {
				m, lines = Message{Role: m.Role, Parts: []Part{{Text: rest}}}, n
			}
		}
		fresh = append(fresh, m)
	}
	return fresh, same, lines
}

// said is a message as a text.
type said struct {
	role Role
	text string
}

func saidIn(messages []Message) []said {
	all := make([]said, len(messages))
	for i := range messages {
		all[i] = said{messages[i].Role, messages[i].Words()}
	}
	return all
}

// begins reports whether a message is another one, with all of its lines or only the first of them.
func (s said) begins(other said) bool {
	rest, ok := strings.CutPrefix(other.text, s.text)
	return ok && s.role == other.role && (rest == "" || rest[0] == '\n')
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
