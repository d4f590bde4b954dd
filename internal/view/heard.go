package view

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"

	"parley/llm"
)

// Hearing picks out of the requests of a conversation what is new in each. A client sends all
// that was said before with every request, and may have several conversations at once: new is
// what comes after the longest beginning that some earlier request had too, without what the
// model itself has answered. Its zero value is ready.
type Hearing struct {
	begun map[[sha256.Size]byte]bool // beginnings of requests
	said  map[string]bool            // answers
}

// New takes in a request and what was answered, which may be nil, and returns the new messages.
func (h *Hearing) New(req *llm.Request, answer *llm.Response) (fresh []llm.Message) {
	if h.begun == nil {
		h.begun, h.said = map[[sha256.Size]byte]bool{}, map[string]bool{}
	}
	var sum [sha256.Size]byte
	from := 0
	for i := range req.Messages {
		b, err := json.Marshal(&req.Messages[i])
		if err != nil { // what is no JSON is told apart by its words
			b = []byte(MessageText(&req.Messages[i]))
		}
		sum = sha256.Sum256(append(sum[:], b...))
		if h.begun[sum] {
			from = i + 1
		}
		h.begun[sum] = true
	}
	if from == len(req.Messages) && from > 0 {
		from-- // asked once more: what for is still worth knowing
	}
	for _, m := range req.Messages[from:] {
		if m.Role != llm.RoleAssistant || !h.said[strings.TrimSpace(MessageText(&m))] {
			fresh = append(fresh, m)
		}
	}
	if answer != nil {
		m := llm.Message{Parts: []llm.Part{{Text: answer.Text}}, ToolCalls: answer.ToolCalls}
		h.said[strings.TrimSpace(MessageText(&m))] = true
	}
	return fresh
}

// MessageText is a message as text: its words, what pictures it has, and what it wants called.
func MessageText(m *llm.Message) string {
	var parts []string
	for _, p := range m.Parts {
		switch {
		case p.Image != nil && len(p.Image.Data) > 0:
			parts = append(parts, fmt.Sprintf("(image %s, %d bytes)", p.Image.MediaType, len(p.Image.Data)))
		case p.Image != nil:
			parts = append(parts, "(image "+p.Image.URL+")")
		case p.Text != "":
			parts = append(parts, p.Text)
		}
	}
	for _, c := range m.ToolCalls {
		parts = append(parts, c.Name+"("+c.Arguments+")")
	}
	return strings.Join(parts, "\n")
}
