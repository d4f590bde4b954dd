package terminal

import (
	"io"
	"strings"
	"unicode/utf8"
)

// Ink is how a piece of text stands out where colours are shown: the number of an SGR
// code.
type Ink string

// The inks. A terminal's own palette decides what they look like.
const (
	InkPlain Ink = ""
	InkHead  Ink = "1"  // what the page is divided by
	InkFaint Ink = "2"  // what is beside the point
	InkBad   Ink = "31" // what failed
	InkGood  Ink = "32" // what ended well
	InkName  Ink = "36" // who speaks
)

// Page is text for standard output. Each piece is made harmless before its colour is put
// around it, so that a page's own colours are all that a terminal is told to do. That holds
// for a pipe too, since what comes out of head or less ends in a terminal.
type Page struct {
	out *Stream
	b   strings.Builder
}

// NewPage returns an empty page for out. An out that is not a stream is not a terminal.
func NewPage(out io.Writer) *Page {
	s, ok := out.(*Stream)
	if !ok {
		s = &Stream{w: out, Width: func() int { return 0 }}
	}
	return &Page{out: s}
}

// Part returns an empty page for the same output, to be added later.
func (p *Page) Part() *Page { return &Page{out: p.out} }

// Add adds a part.
func (p *Page) Add(part *Page) { p.b.WriteString(part.b.String()) }

// Empty says whether nothing was put on the page.
func (p *Page) Empty() bool { return p.b.Len() == 0 }

// Width is that of the terminal, and 0 if there is none.
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

// Quote adds somebody's words. Every line of them begins with a bar, so that no words can
// pass for a line of the page.
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

// Fact adds a line with a name and what there is to say.
func (p *Page) Fact(name, text string) {
	p.Put(InkFaint, "  "+name+strings.Repeat(" ", max(0, 9-len(name))))
	p.Line(" ", OneLine(text))
}

// Flush prints the page.
func (p *Page) Flush() error {
	text := p.b.String()
	p.b.Reset()
	if !p.out.Escapes {
		_, err := io.WriteString(p.out, text)
		return err
	}
	return p.out.obey(text)
}

// Cell is a piece of a table.
type Cell struct {
	Ink    Ink
	Text   string
	Number bool // it stands at the right of its column, and is never cut
}

// Table adds rows with their columns in line. The first row is its head. On a terminal
// the rows fit its width: the widest columns of text are cut.
func (p *Page) Table(rows [][]Cell) {
	var widths []int
	var number []bool
	for _, r := range rows {
		for i := range r {
			c := &r[i]
			c.Text = Safe(c.Text) // as it will be shown
			if i == len(widths) {
				widths, number = append(widths, 0), append(number, c.Number)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(c.Text))
		}
	}
	if width := p.out.Width(); width > 0 {
		narrow(widths, number, width)
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

// padded is a cell as wide as its column. The last of a row has no space behind it.
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
