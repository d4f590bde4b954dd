package request

import (
	"parley/internal/ask/wire/body"
	"parley/llm"
)

// Turns is how a format with two alternating roles writes messages.
type Turns struct {
	Key, Content string // of all turns, and of the content of one
	Assistant    string // the role of the model; the other is user
	First        string // a turn of the user, for a conversation that the model begins
}

// Turns writes the messages that have content: those of the system only with system. Consecutive messages of one role become one
// turn, and the results of tools belong to the user. each writes the content of the message i of ms.
func (w *Writer) Turns(f Turns, system bool, each func(ms []llm.Message, i int)) {
	ms := w.Messages()
	w.B = body.Open(body.Key(w.B, f.Key), '[')
	role := ""
	for i := range ms {
		m := &ms[i]
		if m.Role == llm.RoleSystem && !system || !HasContent(m) {
			continue
		}
		r := "user"
		if m.Role == llm.RoleAssistant {
			r = f.Assistant
		}
		if r != role {
			w.turn(f, role, r)
			role = r
		}
		each(ms, i)
	}
	if role != "" {
		w.B = append(w.B, ']', '}')
	}
	w.B = append(w.B, ']')
}

// turn ends a turn and begins the next. The first must be the user's.
func (w *Writer) turn(f Turns, from, to string) {
	switch {
	case from != "":
		w.B = append(w.B, ']', '}')
	case to == f.Assistant:
		w.B = append(w.B, f.First...)
	}
	w.B = body.Str(body.Open(w.B, '{'), "role", to)
	w.B = body.Open(body.Key(w.B, f.Content), '[')
}
