package export

import (
	"context"

	"parley/internal/run/runfile"
	"parley/llm"
)

// message is a row of Messages.
type message struct {
	callID
	n int
	*llm.Message
}

func (x *export) messages(ctx context.Context) error {
	columns := messageColumns()
	m := &message{}
	return x.replies(ctx, true, func(e runfile.Recorded) error {
		if e.Request == nil {
			return nil
		}
		m.callID = callID{x.run, e}
		for i := range e.Request.Messages {
			m.n, m.Message = i, &e.Request.Messages[i]
			if err := put(x, columns, m); err != nil {
				return err
			}
		}
		return nil
	})
}

func messageColumns() []column[message] {
	return append(callIDColumns(func(m *message) *callID { return &m.callID }), []column[message]{
		col("n", Integer, "its index in the prompt, from 0", func(m *message) cell { return integer(m.n) }),
		few("role", "`system`, `user`, `assistant` or `tool`", func(m *message) cell { return text(string(m.Role)) }),
		col("text", Text, "its text, all parts together", func(m *message) cell { return text(m.Message.Text()) }),
		col("whole", JSON, "the whole message, if it has more than a text: images, files, tool calls, reasoning", func(m *message) cell {
			if plain(m.Message) {
				return cell{}
			}
			return encoded(m.Message)
		}),
	}...)
}

// plain reports whether a message is one text with a role, and nothing else.
func plain(m *llm.Message) bool {
	return len(m.Parts) == 1 && m.Parts[0].IsText() && len(m.Thoughts) == 0 && len(m.ToolCalls) == 0 && m.ToolCallID == "" && !m.ToolFailed
}
