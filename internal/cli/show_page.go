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
// around it, so that a page's own colours are all that a terminal is told to do. That holds
// for a pipe too, since what comes out of head or less ends in a terminal.
type page struct {
	out *stream
	b   strings.Builder
}

// newPage returns an empty page for out. An out that is not a stream is not a terminal.
func newPage(out io.Writer) *page {
	s, ok := out.(*stream)
	if !ok {
		s = &stream{w: out, width: func() int { return 0 }}
	}
	return &page{out: s}
}

// part returns an empty page for the same output, to be added later.
func (p *page) part() *page { return &page{out: p.out} }

// add adds a part.
func (p *page) add(part *page) { p.b.WriteString(part.b.String()) }

// empty says whether nothing was put on the page.
func (p *page) empty() bool { return p.b.Len() == 0 }

// width is that of the terminal, and 0 if there is none.
func (p *page) width() int { return p.out.width() }

// put adds a piece of text.
func (p *page) put(i ink, text string) {
	text = safe(text)
	if p.out.escapes && i != inkPlain && text != "" {
		text = "\x1b[" + string(i) + "m" + text + "\x1b[0m"
	}
	p.b.WriteString(text)
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
	if !p.out.escapes {
		_, err := io.WriteString(p.out, text)
		return err
	}
	return p.out.obey(text)
}

// cell is a piece of a table.
type cell struct {
	ink    ink
	text   string
	number bool // it stands at the right of its column, and is never cut
}

// table adds rows with their columns in line. The first row is its head. On a terminal
// the rows fit its width: the widest columns of text are cut.
func (p *page) table(rows [][]cell) {
	var widths []int
	var number []bool
	for _, r := range rows {
		for i := range r {
			c := &r[i]
			c.text = safe(c.text) // as it will be shown
			if i == len(widths) {
				widths, number = append(widths, 0), append(number, c.number)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(c.text))
		}
	}
	if width := p.out.width(); width > 0 {
		narrow(widths, number, width)
	}
	for n, r := range rows {
		for i, c := range r {
			if n == 0 {
				c.ink = inkFaint
			}
			p.put(c.ink, c.padded(widths[i], i == len(r)-1))
			if i < len(r)-1 {
				p.put(inkPlain, "  ")
			}
		}
		p.line()
	}
}

// padded is a cell as wide as its column. The last of a row has no space behind it.
func (c cell) padded(width int, last bool) string {
	text := cut(c.text, width)
	space := strings.Repeat(" ", width-utf8.RuneCountInString(text))
	switch {
	case c.number:
		return space + text
	case last:
		return text
	default:
		return text + space
	}
}

// narrow takes from the widest columns that may be cut until all fit beside each other,
// or none can give any more.
func narrow(widths []int, number []bool, width int) {
	const least = 8
	over := 2*(len(widths)-1) - width
	for _, w := range widths {
		over += w
	}
	for ; over > 0; over-- {
		widest := -1
		for i, w := range widths {
			if !number[i] && w > least && (widest < 0 || w > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return
		}
		widths[widest]--
	}
}
