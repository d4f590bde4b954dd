package program

import (
	"fmt"
	"strings"

	"parley/internal/ask/answer"
	"parley/llm"
)

// promptOf returns the messages of a request as one text. A single message is the text itself. Programs read texts only.
func promptOf(req *llm.Request) (string, error) {
	var b strings.Builder
	for i := range req.Messages {
		m := &req.Messages[i]
		for _, p := range m.Parts {
			if p.Text == "" {
				return "", fmt.Errorf("message %d holds a file or a tool's result, and a program reads texts only", i+1)
			}
		}
		switch {
		case len(req.Messages) == 1:
		case m.Role == llm.RoleSystem:
			b.WriteString("# Instructions\n\n")
		case m.Role == llm.RoleAssistant:
			b.WriteString("# You wrote\n\n")
		default:
			b.WriteString("# You are told\n\n")
		}
		b.WriteString(strings.TrimSpace(m.Text()))
		b.WriteString("\n")
		if i < len(req.Messages)-1 {
			b.WriteString("\n")
		}
	}
	if len(req.Messages) > 1 {
		b.WriteString("\nWrite your next message, and nothing else.\n")
	}
	if req.Schema != nil {
		b.WriteString("\n" + answer.Instruct(req.Schema.JSON) + "\n")
	}
	return b.String(), nil
}

// placeholders are the values that stand for {name} in a command, its variables and its files.
type placeholders map[string]string

// in replaces the placeholders of a text, each once: what they stand for is not looked at again.
func (p placeholders) in(text string) string {
	var pairs []string
	for name, value := range p {
		pairs = append(pairs, "{"+name+"}", value)
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

func (p placeholders) all(texts []string) []string {
	out := make([]string, len(texts))
	for i, t := range texts {
		out[i] = p.in(t)
	}
	return out
}

// moved replaces folders by others where they stand in a text as such: /app in "cd /app/x" and "/app.", but not in /apple, /my/app and /app.old.
func moved(text string, folders [][2]string) string {
	for _, f := range folders {
		from, to := f[0], f[1]
		var b strings.Builder
		for rest, last := text, byte(' '); ; {
			i := strings.Index(rest, from)
			if i < 0 {
				b.WriteString(rest)
				break
			}
			if i > 0 {
				last = rest[i-1]
			}
			after := rest[i+len(from):]
			b.WriteString(rest[:i])
			if partOfName(last) || last == '/' || last == '.' || continues(after) {
				b.WriteString(from)
			} else {
				b.WriteString(to)
			}
			rest, last = after, from[len(from)-1]
		}
		text = b.String()
	}
	return text
}

func partOfName(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == '~' || c >= 0x80
}

// continues reports whether a text goes on with the same name of a file.
func continues(after string) bool {
	return after != "" && (partOfName(after[0]) || after[0] == '.' && len(after) > 1 && partOfName(after[1]))
}
