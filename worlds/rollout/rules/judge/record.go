package judge

import (
	"fmt"
	"strings"

	"parley/llm"
)

// Record is what happened in an episode, in order. The zero value is empty.
type Record struct{ lines []string }

// Showed adds messages that an agent was shown.
func (r *Record) Showed(seat string, messages []llm.Message) {
	for _, m := range messages {
		if m.Role == llm.RoleAssistant {
			continue // it was added when it was said
		}
		text := m.Text()
		for _, p := range m.Parts {
			if p.Image != nil {
				text += "\n(a picture)"
			}
		}
		who := "environment to " + seat
		if m.Role == llm.RoleTool {
			who = "tool to " + seat
		}
		r.lines = append(r.lines, who+": "+text)
	}
}

// Said adds an answer.
func (r *Record) Said(seat string, answer llm.Message) {
	text := answer.Text()
	for _, c := range answer.ToolCalls {
		text += fmt.Sprintf("\n(calls %s %s)", c.Name, c.Arguments)
	}
	r.lines = append(r.lines, seat+": "+text)
}

// Text returns the record with at most so many bytes: of a longer one, the middle is left out.
func (r *Record) Text(limit int) string { return bounded(strings.Join(r.lines, "\n\n"), limit) }

func bounded(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	half := limit / 2
	return strings.ToValidUTF8(text[:half], "") + "\n\n(…)\n\n" + strings.ToValidUTF8(text[len(text)-half:], "")
}

// wrapped puts a text between tags that it cannot close.
func wrapped(tag, text string) string {
	return "<" + tag + ">\n" + strings.ReplaceAll(text, "</", "<\u200b/") + "\n</" + tag + ">"
}
