package llm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// Words returns a message for a reader: its texts, a line for each image and file, and its tool calls.
func (m *Message) Words() string {
	var parts []string
	for _, p := range m.Parts {
		switch {
		case p.Image != nil && len(p.Image.Data) > 0:
			parts = append(parts, fmt.Sprintf("(image %s, %d bytes)", p.Image.MediaType, len(p.Image.Data)))
		case p.Image != nil:
			parts = append(parts, "(image "+p.Image.URL+")")
		case p.File != nil:
			parts = append(parts, "("+p.File.String()+")")
		case p.Text != "":
			parts = append(parts, p.Text)
		}
	}
	return strings.Join(append(parts, callWords(m.ToolCalls)...), "\n")
}

// Words returns an answer for a reader: its text or JSON, its refusal, and its tool calls.
func (r *Response) Words() string {
	parts := []string{r.Text}
	if r.Text == "" && r.JSON != nil {
		var b bytes.Buffer
		if parts[0] = string(r.JSON); json.Compact(&b, r.JSON) == nil {
			parts[0] = b.String()
		}
	}
	if r.Refusal != "" {
		parts = append(parts, "(refused) "+r.Refusal)
	}
	return strings.TrimSpace(strings.Join(append(parts, callWords(r.ToolCalls)...), "\n"))
}

func callWords(calls []ToolCall) (out []string) {
	for _, c := range calls {
		out = append(out, c.Name+"("+c.Arguments+")")
	}
	return out
}
