package cli

import (
	"fmt"
	"unicode/utf8"

	"parley/internal/cli/terminal"
	"parley/internal/run/results"
)

// findNew finds the new messages in each request of a gateway's record. Other kinds note what their seats are
// shown.
func (t *Transcript) findNew() {
	var h results.MessageDiff
	for _, turn := range t.Turns {
		for _, r := range turn.Replies {
			if r.Request != nil {
				r.Asked = h.New(r.Request, r.Response)
			}
		}
	}
}

// maxAsked is how many characters of a message are shown above an answer.
const maxAsked = 2000

// asked writes the new messages of the request above the answer.
func (c *Call) asked(p *terminal.Page, indent string) {
	for i := range c.Asked {
		m := &c.Asked[i]
		p.Put(terminal.InkName, indent+string(m.Role))
		p.Line()
		text := results.MessageText(m)
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
