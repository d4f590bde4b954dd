package viewer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"slices"
	"strconv"
	"time"

	"parley/internal/run/results"
	"parley/journal"
	"parley/llm"
)

// CallPage is one call in full: what was asked, what came back, and what it cost.
type CallPage struct {
	Name    string
	Replied *journal.Replied
	Agent   string // see results.Answerer
	Kind    string
	Asked   []Asked
	Answer  Words
	Thought []Words
	JSON    string
	Failure *llm.Error
	Usage   llm.Usage
	Meta    llm.Metadata
	At      time.Time
	Raw     string   // everything, as JSON
	Images  []string // the addresses of images in the request
}

// Asked is a message of a request. New means that it was not in the request before.
type Asked struct {
	Role string
	Words
	New bool
}

// newCallPage returns the page of a call, which is at an address. Texts are formatted if f is not nil.
func newCallPage(begun *journal.Begun, name, at string, e *journal.Replied, f *formatter) CallPage {
	d := CallPage{Name: name, Replied: e, Agent: results.Answerer(begun, e), Kind: "bot", Failure: e.Error, At: e.At}
	switch {
	case e.Act != nil:
		d.Kind = "act"
		d.Asked = []Asked{{Role: e.Act.Name, Words: Words{Text: indent(e.Act.Body)}, New: true}}
	case e.Request != nil:
		d.Kind = "ask"
		last := -1
		for i, m := range e.Request.Messages {
			if m.Role == llm.RoleAssistant {
				last = i
			}
		}
		for i := range e.Request.Messages {
			m := &e.Request.Messages[i]
			d.Asked = append(d.Asked, Asked{Role: string(m.Role), Words: Words{Text: results.MessageText(m)}, New: i > last})
		}
	}
	if e.Request != nil {
		for i, im := range images(e.Request) {
			if _, ok := picture(im); ok {
				d.Images = append(d.Images, fmt.Sprintf("%s?image=%d", at, i))
			}
		}
	}
	if e.Response != nil {
		d.Answer, d.Usage, d.Meta = newWords(f, results.AnswerText(e.Response)), e.Response.Usage, e.Response.Metadata
		for _, t := range e.Response.Thoughts {
			d.Thought = append(d.Thought, newWords(f, t.Text))
		}
		if string(e.Response.JSON) != e.Response.Text {
			d.JSON = indent(e.Response.JSON)
		}
	}
	for i := range slices.Backward(d.Asked) { // the answer and what is new come first: a page formats so much
		d.Asked[i].Words = newWords(f, d.Asked[i].Text)
	}
	if e.Error != nil {
		d.Usage, d.Meta = e.Error.Usage, e.Error.Metadata
	}
	if b, err := json.MarshalIndent(map[string]any{"request": e.Request, "act": e.Act, "response": e.Response, "error": e.Error}, "", "  "); err == nil {
		d.Raw = string(b)
	}
	return d
}

// indent returns JSON for people, or the text as it is.
func indent(raw []byte) string {
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return string(raw)
	}
	return b.String()
}

// images returns the images of a request.
func images(r *llm.Request) (all []*llm.Image) {
	for _, m := range r.Messages {
		for _, part := range m.Parts {
			if part.Image != nil {
				all = append(all, part.Image)
			}
		}
	}
	return all
}

// writeImage serves an image of a request, by its number among all of them.
func writeImage(w http.ResponseWriter, e *journal.Replied, number string) error {
	var all []*llm.Image
	if e.Request != nil {
		all = images(e.Request)
	}
	n, err := strconv.Atoi(number)
	if err != nil || n < 0 || n >= len(all) {
		return errNoImage
	}
	kind, ok := picture(all[n])
	if !ok {
		return errNoImage
	}
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	h.Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write(all[n].Data) // the browser is gone
	return nil
}

var errNoImage = fmt.Errorf("said: there is no such image: %w", fs.ErrNotExist)
