package results

import (
	"crypto/sha256"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"parley/journal"
	"parley/llm"
)

// MessageDiff finds the new messages in each request of a client. A client repeats all earlier
// messages in every request, and may have several conversations at once. New messages are
// those after the longest beginning that an earlier request had too, except the model's own
// answers. Its zero value is ready to use.
type MessageDiff struct {
	beginnings map[[sha256.Size]byte]bool // of requests
	answers    map[string]bool
}

// New adds a request and its answer, which may be nil, and returns the new messages.
func (d *MessageDiff) New(req *llm.Request, answer *llm.Response) (fresh []llm.Message) {
	if d.beginnings == nil {
		d.beginnings, d.answers = map[[sha256.Size]byte]bool{}, map[string]bool{}
	}
	var sum [sha256.Size]byte
	from := 0
	for i := range req.Messages {
		b, err := json.Marshal(&req.Messages[i])
		if err != nil { // compare by text instead
			b = []byte(req.Messages[i].Words())
		}
		sum = sha256.Sum256(append(sum[:], b...))
		if d.beginnings[sum] {
			from = i + 1
		}
		d.beginnings[sum] = true
	}
	if from == len(req.Messages) && from > 0 {
		from-- // the request is repeated: show its last message
	}
	for _, m := range req.Messages[from:] {
		if m.Role != llm.RoleAssistant || !d.answers[strings.TrimSpace(m.Words())] {
			fresh = append(fresh, m)
		}
	}
	if answer != nil {
		m := llm.Message{Parts: []llm.Part{{Text: answer.Text}}, ToolCalls: answer.ToolCalls}
		d.answers[strings.TrimSpace(m.Words())] = true
	}
	return fresh
}

// Size returns about how many bytes an entry has when it is written out: its notes; or the texts of its request, as far as they were
// read, and of its answer.
func Size(entry journal.Entry) (n int64) {
	switch e := entry.(type) {
	case *journal.Turned:
		for _, note := range e.Notes {
			n += int64(len(note.Data))
		}
	case *journal.Replied:
		if e.Request != nil {
			n += MessagesSize(e.Request.Messages)
		}
		if e.Response != nil {
			n += int64(len(e.Response.Text) + len(e.Response.JSON))
		}
	}
	return n
}

// MessagesSize returns about how many bytes messages have.
func MessagesSize(messages []llm.Message) (n int64) {
	for i := range messages {
		n += 32 // a role, and what is around a text
		for _, p := range messages[i].Parts {
			n += 32 + int64(len(p.Text))
			if p.Image != nil {
				n += int64(len(p.Image.Data))
			}
			if p.File != nil {
				n += int64(len(p.File.Data))
			}
		}
		for _, c := range messages[i].ToolCalls {
			n += int64(len(c.Arguments))
		}
		for _, t := range messages[i].Thoughts {
			n += int64(len(t.Text))
		}
	}
	return n
}

// Prompt is what is new in a request since the last one of the same seat.
type Prompt struct {
	Fresh       []llm.Message
	Same, Lines int // messages, and lines of the first of Fresh, that are left out
}

// ByTime puts lines in the order of time, if they are of several strands, and returns the time of the first reply. The
// lines of a turn stay together. A turn without replies follows what comes before it in lines.
func ByTime(lines []Line) (began time.Time) {
	strands := false
	when := map[string]time.Time{} // by turn
	for _, l := range lines {
		strands = strands || strings.Contains(l.Turn, "/")
		if l.Reply != nil && !l.Reply.At.IsZero() && when[l.Turn].IsZero() {
			when[l.Turn] = l.Reply.At
			if began.IsZero() || l.Reply.At.Before(began) {
				began = l.Reply.At
			}
		}
	}
	if !strands {
		return began
	}
	var last time.Time
	for _, l := range lines {
		if when[l.Turn].IsZero() {
			when[l.Turn] = last
		}
		if when[l.Turn].After(last) {
			last = when[l.Turn]
		}
	}
	slices.SortStableFunc(lines, func(a, b Line) int { return when[a.Turn].Compare(when[b.Turn]) })
	return began
}

// Prompts returns what is new in the requests of a window.
func Prompts(all, window []Line, fill func(...*journal.Replied) error) (map[string]Prompt, error) {
	type seat struct{ name, label string }
	before, last := map[*journal.Replied]*journal.Replied{}, map[seat]*journal.Replied{}
	for _, l := range all {
		if l.Reply != nil && l.Reply.Request != nil {
			at := seat{l.Reply.Seat, l.Reply.Label}
			if last[at] != l.Reply {
				before[l.Reply], last[at] = last[at], l.Reply
			}
		}
	}
	wanted := map[*journal.Replied]bool{}
	var read []*journal.Replied
	for _, l := range window {
		for _, r := range []*journal.Replied{l.Reply, before[l.Reply]} {
			if r != nil && r.Request != nil && !wanted[r] {
				wanted[r], read = true, append(read, r)
			}
		}
	}
	if err := fill(read...); err != nil {
		return nil, err
	}
	out := map[string]Prompt{}
	for _, l := range window {
		if l.Reply == nil || l.Reply.Request == nil {
			continue
		}
		var p Prompt
		var earlier *llm.Request
		if b := before[l.Reply]; b != nil {
			earlier = b.Request
		}
		p.Fresh, p.Same, p.Lines = l.Reply.Request.Since(earlier)
		out[l.Call] = p
	}
	return out, nil
}
