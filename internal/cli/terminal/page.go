package terminal

import (
	"io"
	"strings"
	"unicode/utf8"
)

// Ink is the style of a text on a terminal with colors: the number of an SGR code.
type Ink string

// The inks. The palette of the terminal decides what they look like.
const (
	InkPlain Ink = ""
	InkHead  Ink = "1"  // headings
	InkFaint Ink = "2"  // secondary text
	InkBad   Ink = "31" // failures
	InkGood  Ink = "32" // success
	InkWarn  Ink = "33" // what needs a look
	InkName  Ink = "36" // speakers
)

// Page is text for standard output. Each piece is made harmless before its color is added, so the page's own
// colors are the only control codes. This also holds for a pipe, since the output of head or less reaches a
// terminal.
type Page struct {
	out *Stream
	b   strings.Builder
}

// NewPage returns an empty page for out. If out is not a Stream, it is not a terminal.
func NewPage(out io.Writer) *Page {
	s, ok := out.(*Stream)
	if !ok {
		s = &Stream{w: out, Width: func() int { return 0 }}
	}
	return &Page{out: s}
}

// Part returns an empty page for the same output, to add later with Add.
func (p *Page) Part() *Page { return &Page{out: p.out} }

// Add appends a part.
func (p *Page) Add(part *Page) { p.b.WriteString(part.b.String()) }

// Empty reports whether the page is empty.
func (p *Page) Empty() bool { return p.b.Len() == 0 }

// Width returns the width of the terminal, or 0 if the output is not a terminal.
func (p *Page) Width() int { return p.out.Width() }

// Put adds a piece of text.
func (p *Page) Put(i Ink, text string) {
	text = Safe(text)
	if p.out.Escapes && i != InkPlain && text != "" {
		text = "\x1b[" + string(i) + "m" + text + "\x1b[0m"
	}
	p.b.WriteString(text)
}

// Line adds pieces of plain text and ends the line.
func (p *Page) Line(pieces ...string) { p.Put(InkPlain, strings.Join(pieces, "")+"\n") }

// Quote adds words of a model or a person. Every line begins with a bar, so that it cannot look like a line of
// the page.
func (p *Page) Quote(indent, words string) { p.Behind(InkFaint, indent+"|", words) }

// Behind adds lines, each with a mark before it.
func (p *Page) Behind(i Ink, mark, text string) {
	text = strings.TrimRight(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	for line := range strings.SplitSeq(text, "\n") {
		p.Put(i, mark)
		if line != "" {
			line = " " + line
		}
		p.Line(line)
	}
}

// Fact adds a line with a name and a text.
func (p *Page) Fact(name, text string) { p.InkedFact(InkPlain, name, text) }

// InkedFact adds a line with a name and a text in a colour.
func (p *Page) InkedFact(i Ink, name, text string) {
	p.Put(InkFaint, "  "+name+strings.Repeat(" ", max(0, 9-len(name)))+" ")
	p.Put(i, OneLine(text))
	p.Line()
}

// Flush prints the page.
func (p *Page) Flush() error {
	text := p.b.String()
	p.b.Reset()
	if !p.out.Escapes {
		_, err := io.WriteString(p.out, text)
		return err
	}
	return p.out.writeRaw(text)
}

// Cell is a cell of a table.
type Cell struct {
	Ink    Ink
	Text   string
	Number bool // aligned right, and never cut
}

// Table adds rows with aligned columns. The first row is the heading. On a terminal, the widest text columns are
// cut so that the rows fit.
func (p *Page) Table(rows [][]Cell) {
	var widths []int
	var number []bool
	for _, r := range rows {
		for i := range r {
			c := &r[i]
			c.Text = Safe(c.Text) // measure the text as it is shown
			if i == len(widths) {
				widths, number = append(widths, 0), append(number, c.Number)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(c.Text))
		}
	}
	if width := p.out.Width(); width > 0 {
		fitColumns(widths, number, width)
	}
	for n, r := range rows {
		for i, c := range r {
			if n == 0 {
				c.Ink = InkFaint
			}
			p.Put(c.Ink, c.padded(widths[i], i == len(r)-1))
			if i < len(r)-1 {
				p.Put(InkPlain, "  ")
			}
		}
		p.Line()
	}
}

// padded pads a cell to the width of its column. The last cell of a row gets no trailing spaces.
func (c Cell) padded(width int, last bool) string {
	text := Cut(c.Text, width)
	space := strings.Repeat(" ", width-utf8.RuneCountInString(text))
	switch {
	case c.Number:
		return space + text
	case last:
		return text
	default:
		return text + space
	}
}

// fitColumns cuts the widest text columns until all columns fit, or none can be cut further.
func fitColumns(widths []int, number []bool, width int) {
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
