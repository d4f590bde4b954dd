package rules

import (
	"fmt"
	"slices"
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
		who := "environment to " + seat
		if m.Role == llm.RoleTool {
			who = "tool to " + seat
		}
		r.lines = append(r.lines, who+": "+m.Text())
		if slices.ContainsFunc(m.Parts, func(p llm.Part) bool { return p.Image != nil }) {
			r.lines = append(r.lines, "(a picture)")
		}
		for _, p := range m.Parts {
			if p.File != nil {
				r.lines = append(r.lines, "("+p.File.String()+")")
			}
		}
	}
}

// Said adds an answer.
func (r *Record) Said(seat string, answer llm.Message) {
	r.lines = append(r.lines, seat+": "+answer.Text())
	for _, c := range answer.ToolCalls {
		r.lines = append(r.lines, fmt.Sprintf("(%s calls %s %s)", seat, c.Name, c.Arguments))
	}
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
