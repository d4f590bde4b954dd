package cli

import (
	"io"
	"strings"
	"unicode/utf8"
)

// ink is how a piece of text stands out where colours are shown: the number of an SGR
// code.
type ink string

// The inks. A terminal's own palette decides what they look like.
const (
	inkPlain ink = ""
	inkHead  ink = "1"  // what the page is divided by
	inkFaint ink = "2"  // what is beside the point
	inkBad   ink = "31" // what failed
	inkGood  ink = "32" // what ended well
	inkName  ink = "36" // who speaks
)

// page is text for standard output. Each piece is made harmless before its colour is put
// around it, so that a page's own colours are all that a terminal is told to do.
type page struct {
	out     *stream
	colours bool
	b       strings.Builder
}

// newPage makes an empty page. It has colours on a terminal, unless NO_COLOR is set or the
// terminal is a dumb one.
func newPage(s *State) *page {
	out, ok := s.Stdout.(*stream)
	if !ok {
		out = newStream(s.Stdout, s.Terminal)
	}
	none, _ := s.Env("NO_COLOR")
	term, _ := s.Env("TERM")
	return &page{out: out, colours: out.width > 0 && none == "" && term != "dumb"}
}

// put adds a piece of text.
func (p *page) put(i ink, text string) {
	switch {
	case !p.colours:
		p.b.WriteString(text)
	case i == inkPlain || text == "":
		p.b.WriteString(safe(text))
	default:
		p.b.WriteString("\x1b[" + string(i) + "m" + safe(text) + "\x1b[0m")
	}
}

// line adds pieces of plain text and ends the line.
func (p *page) line(pieces ...string) { p.put(inkPlain, strings.Join(pieces, "")+"\n") }

// quote adds somebody's words. Every line of them begins with a bar, so that no words can
// pass for a line of the page.
func (p *page) quote(indent, words string) { p.behind(inkFaint, indent+"|", words) }

// behind adds lines, each with a mark before it.
func (p *page) behind(i ink, mark, text string) {
	text = strings.TrimRight(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	for line := range strings.SplitSeq(text, "\n") {
		p.put(i, mark)
		if line != "" {
			line = " " + line
		}
		p.line(line)
	}
}

// fact adds a line with a name and what there is to say.
func (p *page) fact(name, text string) {
	p.put(inkFaint, "  "+name+strings.Repeat(" ", max(0, 9-len(name))))
	p.line(" ", oneLine(text))
}

// flush prints the page.
func (p *page) flush() error {
	text := p.b.String()
	p.b.Reset()
	if !p.colours {
		_, err := io.WriteString(p.out, text)
		return err
	}
	return p.out.obey(text)
}

// obey writes what is to reach the terminal as it is: text that was made harmless, and
// our own codes.
func (s *stream) obey(text string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shown {
		s.shown = false
		text = wipe + text
	}
	_, err := io.WriteString(s.w, text)
	return err
}

// cell is a piece of a table.
type cell struct {
	ink  ink
	text string
}

// table adds rows with their columns in line. The first row is its head.
func (p *page) table(rows [][]cell) {
	var widths []int
	for _, r := range rows {
		for i, c := range r {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(c.text))
		}
	}
	for n, r := range rows {
		for i, c := range r {
			text := c.text
			if i < len(r)-1 {
				text += strings.Repeat(" ", widths[i]-utf8.RuneCountInString(text)+2)
			}
			if n == 0 {
				c.ink = inkFaint
			}
			p.put(c.ink, text)
		}
		p.line()
	}
}

// oneLine puts a text on one line.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
