package viewer

import (
	"fmt"
	"strings"
	"time"

	"parley/internal/kit/text"
	"parley/internal/read/report"
	"parley/internal/run/label"
	"parley/internal/run/results"
	"parley/journal"
	"parley/llm"
)

// Line is a line of a transcript with everything that is known about it.
type Line struct {
	report.TranscriptLine
	Shown   Words  // its text
	Private string // who can read it, if not everybody
	Spent   string // time, cost and tries of the call
	CallAt  string // the page of the call; empty: it has none
	LabelAt string // the form to label it; empty: it cannot be labelled
	Anchor  string // of the line on the page
	Labels  []label.Label
	Prompt  *results.Prompt // what is new in the request; nil: another line has it
	Fresh   []message       // of Prompt
	Images  []string        // the addresses of images in Fresh
	More    int             // new messages that only the page of the call has
}

// message is a message of a request.
type message struct {
	Role string
	Words
}

// transcriptLinks says where the lines of an episode link to, and how they show their texts.
type transcriptLinks struct {
	Call   string              // the pages of calls, without the name of one
	Label  string              // the form to label a call, without its name; empty: there is none
	Keep   func(string) string // adds to an address what all pages of the episode share
	Format *formatter          // nil: texts are as they were written
}

// maxAsked is how many bytes of a message a line shows: the page of the call has all.
const maxAsked = 4000

// maxFresh is how many new messages a line shows.
const maxFresh = 3

// newLine returns a line. first means that it is the first line of its call, and last the last one.
func newLine(l report.TranscriptLine, e *report.Episode, at transcriptLinks, labels []label.Label, first, last bool) Line {
	out := Line{TranscriptLine: l, Private: private(&l.Line), Shown: Words{Text: l.Text}}
	if l.Said != results.SaidFailed && !l.Data {
		out.Shown = newWords(at.Format, l.Text)
	}
	out.Shown.Cut = l.Cut
	if l.Reply == nil || l.Call == "" {
		return out
	}
	out.CallAt = at.Keep(at.Call + l.Call)
	if last {
		out.Anchor, out.Spent = "call-"+l.Call, spent(l.Reply)
		if at.Label != "" {
			out.LabelAt = at.Keep(at.Label + l.Call + "#label")
		}
		for _, x := range labels {
			if x.Call == l.Call {
				out.Labels = append(out.Labels, x)
			}
		}
	}
	if p, ok := e.Prompts[l.Call]; ok && first && l.Said != results.SaidAsked && len(p.Fresh) > 0 {
		out.Prompt = &p
		out.ask(l.Reply.Request, p, at.Call+l.Call, at.Format)
	}
	return out
}

// ask adds the new messages of a request.
func (l *Line) ask(req *llm.Request, p results.Prompt, at string, f *formatter) {
	for i := range p.Fresh {
		if i == maxFresh {
			l.More = len(p.Fresh) - i
			break
		}
		text := results.MessageText(&p.Fresh[i])
		cut := len(text) > maxAsked
		if cut {
			text = strings.ToValidUTF8(text[:maxAsked], "")
		}
		m := message{string(p.Fresh[i].Role), newWords(f, text)}
		m.Cut = cut // it is beside the text: a text could hide it
		l.Fresh = append(l.Fresh, m)
	}
	n := 0
	for i, m := range req.Messages {
		for _, part := range m.Parts {
			if part.Image == nil {
				continue
			}
			if _, ok := picture(part.Image); ok && i >= p.Same {
				l.Images = append(l.Images, fmt.Sprintf("%s?image=%d", at, n))
			}
			n++
		}
	}
}

// picture returns the type of an image that pages may show: one with its own content, of a type that runs no script.
func picture(i *llm.Image) (kind string, ok bool) {
	switch i.MediaType {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return i.MediaType, len(i.Data) > 0
	default:
		return "", false
	}
}

// Asked says what a prompt has, in a few words.
func (l Line) Asked() string {
	if n := len(l.Fresh) + l.More; n != 1 {
		return fmt.Sprintf("%d new messages", n)
	}
	theText := strings.Join(strings.Fields(l.Fresh[0].Text), " ")
	return text.Excerpt(theText, 80)
}

// private says who can read a line, if not everybody.
func private(l *results.Line) string {
	switch {
	case l.Said == results.SaidThought:
		return "private: nobody else reads it"
	case l.To != "":
		return "private: to " + l.To
	default:
		return ""
	}
}

// spent returns what a call took.
func spent(r *journal.Replied) string {
	var meta llm.Metadata
	switch {
	case r.Response != nil:
		meta = r.Response.Metadata
	case r.Error != nil:
		meta = r.Error.Metadata
	}
	var parts []string
	if meta.Latency > 0 {
		parts = append(parts, report.Duration(meta.Latency))
	}
	if meta.Cost > 0 {
		parts = append(parts, report.Dollars(meta.Cost))
	}
	if meta.Attempts > 1 {
		parts = append(parts, fmt.Sprintf("%d tries", meta.Attempts))
	}
	if meta.Cached {
		parts = append(parts, "from the cache")
	}
	return strings.Join(parts, " · ")
}

// promptSince formats how long after the beginning of an episode something happened; empty if a time is unknown.
func promptSince(began, at time.Time) string {
	if began.IsZero() || at.IsZero() {
		return ""
	}
	return "+" + report.Duration(max(0, at.Sub(began)))
}
