package cli

import "parley/internal/cli/terminal"

func (o *Outcome) print(p *terminal.Page) {
	p.Line()
	p.Put(terminal.InkHead, "outcome")
	p.Line()
	if o.Failed != "" {
		p.Put(terminal.InkBad, "  failed: "+terminal.OneLine(o.Failed))
		p.Line()
	}
	for i := 0; i < len(o.Scores); {
		n := i + 1
		for n < len(o.Scores) && o.Scores[n].Seat == o.Scores[i].Seat {
			n++
		}
		p.Line("  ", scoresText(o.Scores[i:n]))
		i = n
	}
	if len(o.Data) > 0 && string(o.Data) != "null" {
		p.Put(terminal.InkFaint, "  "+terminal.OneLine(string(o.Data)))
		p.Line()
	}
	if o.Stack != "" {
		p.Quote("  ", o.Stack)
	}
}
