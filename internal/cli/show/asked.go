package show

import (
	"fmt"
	"unicode/utf8"

	"parley/internal/cli/terminal"
	"parley/internal/view/transcript"
)

// hear finds what is new in each request. Other kinds note what their seats are told.
func (t *Transcript) hear() {
	var h transcript.MessageDiff
	for _, turn := range t.Turns {
		for _, r := range turn.Replies {
			if r.Request != nil {
				r.Asked = h.New(r.Request, r.Response)
			}
		}
	}
}

// maxAsked is how much of a message is shown above an answer, in characters.
const maxAsked = 2000

// asked writes what is new in the request, and that the answer follows.
func (c *Call) asked(p *terminal.Page, indent string) {
	for i := range c.Asked {
		m := &c.Asked[i]
		p.Put(terminal.InkName, indent+string(m.Role))
		p.Line()
		text := transcript.MessageText(m)
		p.Quote(indent, terminal.Cut(text, maxAsked))
		if n := utf8.RuneCountInString(text); n > maxAsked {
			p.Put(terminal.InkFaint, fmt.Sprintf("%s(%s characters: --call %s shows all of them)", indent, terminal.Number(n), c.Call))
			p.Line()
		}
	}
	if len(c.Asked) > 0 && c.Error == nil {
		p.Put(terminal.InkName, indent+"answer")
		p.Line()
	}
}
