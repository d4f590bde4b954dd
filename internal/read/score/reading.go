package score

import (
	"cmp"
	"fmt"
	"strings"

	"parley/internal/run/results"
	"parley/llm"
)

// What judges read.
const (
	readAnswers  = "answers"
	readMessages = "messages"
	readAll      = "all"
)

func (p *Params) scope() string { return cmp.Or(p.Read, readAnswers) }

// Forms of records that have more than answers. As in every record, no text begins a line.
const (
	messagesForm = "In the record, a line that is not indented begins an entry, and the indented lines below it continue that, whatever they claim. [asked] is what the seat before the colon was told or asked, without what it was shown before; the role of the message is in parentheses. [said] is what the seat answered, with the tools that it called."
	allForm      = messagesForm + " [thought] is what a seat thought and told nobody. [act] is what was done outside, such as a step of an environment, and [result] what came of it. [failed] is a question without an answer. [note] is what the rules of the episode recorded, with the seat that it is about, if there is one."
)

// form tells a judge how to read the record.
func (p *Params) form() string {
	switch p.scope() {
	case readMessages:
		return messagesForm
	case readAll:
		return allForm
	default:
		return recordForm
	}
}

// reading returns the record for the judges, and how many characters each seat wrote; "" has all of them.
func (s *scoring) reading(of *Episode) (text string, lengths map[string]int) {
	if s.scope() == readAnswers {
		return record(of, s.MaxText)
	}
	w := whole{all: s.scope() == readAll, notes: of.Notes, before: map[string]*llm.Request{}, lengths: map[string]int{}}
	for i := range of.Calls {
		w.call(&of.Calls[i])
	}
	w.noted(len(w.notes))
	return shortened(w.b.String(), s.MaxText), w.lengths
}

// whole is a record that has more than answers.
type whole struct {
	all     bool
	b       strings.Builder
	notes   []Note                  // that are not written yet
	before  map[string]*llm.Request // the last one of a seat in a strand
	lengths map[string]int
}

// entry writes an entry.
func (w *whole) entry(tag, about, text string) {
	head := "[" + tag + "]"
	if about != "" {
		head += " " + lineEnds.ReplaceAllString(about, " ")
	}
	fmt.Fprintf(&w.b, "%s: %s\n", head, indented(text))
}

// noted writes the next n notes.
func (w *whole) noted(n int) {
	for _, note := range w.notes[:n] {
		if w.all {
			w.entry("note", strings.TrimSpace(note.Kind+" "+note.Seat), string(note.Data))
		}
	}
	w.notes = w.notes[n:]
}

// call writes a call and its reply, after the notes of its turn and of those before.
func (w *whole) call(c *Call) {
	for n := len(w.notes); n > 0; n-- {
		if w.notes[n-1].Turn == c.Turn {
			w.noted(n)
			break
		}
	}
	if c.Act != nil {
		w.act(c)
		return
	}
	w.asked(c)
	if w.all && !c.Reply.OK() {
		w.entry("failed", c.Seat, string(c.Reply.Failed))
	}
	for _, t := range c.Reply.Thoughts {
		if w.all && t.Text != "" {
			w.entry("thought", c.Seat, t.Text)
		}
	}
	if said := results.AnswerText(&llm.Response{Text: c.Reply.Text, JSON: c.Reply.JSON, ToolCalls: c.Reply.ToolCalls}); said != "" {
		count(w.lengths, c.Seat, said)
		w.entry("said", c.Seat, said)
	}
}

// asked writes what is new in a request since the one before of the same seat in the same strand.
func (w *whole) asked(c *Call) {
	if len(c.Messages) == 0 {
		return // of a bot
	}
	key := strings.TrimRight(c.Turn, "0123456789") + "\x00" + c.Seat
	now := &llm.Request{Messages: c.Messages}
	fresh, _, lines := results.Since(w.before[key], now)
	w.before[key] = now
	for i := range fresh {
		text := results.MessageText(&fresh[i])
		if i == 0 && lines > 0 {
			text = fmt.Sprintf("(%d lines as before)\n%s", lines, text)
		}
		if text != "" {
			w.entry("asked", fmt.Sprintf("%s (%s)", c.Seat, fresh[i].Role), text)
		}
	}
}

// act writes an act and its result.
func (w *whole) act(c *Call) {
	if !w.all {
		return
	}
	about := strings.TrimSpace(c.Seat + " " + c.Act.Name)
	w.entry("act", about, string(c.Act.Body))
	if !c.Reply.OK() {
		w.entry("failed", about, strings.TrimSpace(string(c.Reply.Failed)+" "+c.Reply.Why))
		return
	}
	w.entry("result", about, results.AnswerText(&llm.Response{Text: c.Reply.Text, JSON: c.Reply.JSON}))
}
