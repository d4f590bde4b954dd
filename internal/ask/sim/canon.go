// Part canon writes a request in a form that does not depend on the wire format it came in, so that the simulated provider gives
// a question the same answer in each.
//
// It promises that a request in this form has the same texts, in the same order, with the same schema and tools. It is not for what formats
// cannot hold, such as parameters that some of them lack.

package sim

import (
	"slices"

	"parley/internal/ask/answer"
	"parley/llm"
)

// canonical returns req in that form. Some formats put the texts of the system before the conversation, some join the messages of a role to one turn, and
// where a schema is not sent natively, or not all of it, the prompt holds it.
//
// It returns req itself if nothing changes, and a request with at least one message if req has one.
func canonical(req *llm.Request) *llm.Request {
	if isCanonical(req.Messages) {
		return req
	}
	c := canon{out: *req}
	c.out.Messages = make([]llm.Message, 0, len(req.Messages)+1)
	for _, system := range []bool{true, false} {
		for i := range req.Messages {
			if m := &req.Messages[i]; (m.Role == llm.RoleSystem) == system {
				c.add(m)
			}
		}
	}
	if len(c.out.Messages) == 0 {
		return req
	}
	if len(c.schema) > 0 {
		s := llm.Schema{JSON: c.schema}
		if req.Schema != nil {
			s.Name, s.Description = req.Schema.Name, req.Schema.Description
		}
		c.out.Schema = &s
	}
	return &c.out
}

// isCanonical reports whether Request would change nothing: the system's messages come first, each message has one text,
// and none has a schema.
func isCanonical(messages []llm.Message) bool {
	begun := false
	for i := range messages {
		m := &messages[i]
		if begun && m.Role == llm.RoleSystem || len(m.Parts) > 1 || len(m.Parts) == 0 && len(m.ToolCalls) == 0 {
			return false
		}
		begun = begun || m.Role != llm.RoleSystem
		if len(m.Parts) == 0 {
			continue
		}
		if !m.Parts[0].IsText() || m.Parts[0].Text == "" {
			return false
		}
		if _, schema := answer.Instructed(m.Parts[0].Text); m.Role == llm.RoleUser && schema != nil {
			return false
		}
	}
	return true
}

// canon is a request that is being made canonical.
type canon struct {
	out    llm.Request
	schema []byte // the last in the prompt
}

// add adds a message: its parts to the message before, if that is of the same role, but a text that follows a text as a message of its
// own. A message without content is left out.
func (c *canon) add(m *llm.Message) {
	if m.Role == llm.RoleTool {
		c.out.Messages = append(c.out.Messages, *m)
		return
	}
	for _, p := range m.Parts {
		if m.Role == llm.RoleUser && p.IsText() {
			if rest, schema := answer.Instructed(p.Text); schema != nil {
				p.Text, c.schema = rest, schema
			}
		}
		if p.IsText() && p.Text == "" {
			continue
		}
		last := c.last(m.Role)
		if last == nil || p.IsText() && last.Parts[len(last.Parts)-1].IsText() {
			c.out.Messages = append(c.out.Messages, llm.Message{Role: m.Role, Parts: []llm.Part{p}})
			continue
		}
		last.Parts = append(slices.Clip(last.Parts), p)
	}
	if len(m.ToolCalls) == 0 {
		return
	}
	if last := c.last(m.Role); last != nil && len(m.Parts) > 0 {
		last.ToolCalls = m.ToolCalls
		return
	}
	c.out.Messages = append(c.out.Messages, llm.Message{Role: m.Role, ToolCalls: m.ToolCalls})
}

// last returns the last message if it is of a role and ends with a part.
func (c *canon) last(role llm.Role) *llm.Message {
	n := len(c.out.Messages)
	if n == 0 || c.out.Messages[n-1].Role != role || len(c.out.Messages[n-1].ToolCalls) > 0 {
		return nil
	}
	return &c.out.Messages[n-1]
}
