package cli

import (
	"fmt"
	"unicode/utf8"

	"parley/internal/view/transcript"
)

// hear finds what is new in each request. Other kinds note what their seats are told.
func (t *shownTranscript) hear() {
	var h transcript.MessageDiff
	for _, turn := range t.Turns {
		for _, r := range turn.Replies {
			if r.Request != nil {
				r.Asked = h.New(r.Request, r.Response)
			}
		}
	}
}

// mostAsked is how much of a message is shown above an answer, in characters.
const mostAsked = 2000

// asked writes what is new in the request, and that the answer follows.
func (c *shownCall) asked(p *page, indent string) {
	for i := range c.Asked {
		m := &c.Asked[i]
		p.put(inkName, indent+string(m.Role))
		p.line()
		text := transcript.MessageText(m)
		p.quote(indent, cut(text, mostAsked))
		if n := utf8.RuneCountInString(text); n > mostAsked {
			p.put(inkFaint, fmt.Sprintf("%s(%s characters: --call %s shows all of them)", indent, number(n), c.Call))
			p.line()
		}
	}
	if len(c.Asked) > 0 && c.Error == nil {
		p.put(inkName, indent+"answer")
		p.line()
	}
}
