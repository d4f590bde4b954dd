package terminal

import (
	"io"
	"slices"
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

// InkedLine adds a line in a colour.
func (p *Page) InkedLine(i Ink, text string) {
	p.Put(i, text)
	p.Line()
}

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

// Item adds an item of a list. On a terminal, its lines are broken between words.
func (p *Page) Item(text string) {
	p.Put(InkFaint, "-")
	p.Line(" ", strings.Join(p.broken(OneLine(Safe(text)), 2), "\n  "))
}

// Text adds a paragraph, broken as an Item is.
func (p *Page) Text(text string) { p.Line(strings.Join(p.broken(OneLine(Safe(text)), 0), "\n")) }

// Note adds a remark of the program, broken as an Item is.
func (p *Page) Note(text string) {
	p.Put(InkFaint, strings.Join(p.broken(text, 0), "\n")+"\n")
}

// broken breaks a text between words, so that its lines fit the terminal behind an indent.
func (p *Page) broken(text string, indent int) []string {
	if p.Width() <= indent {
		return []string{text}
	}
	return breakText(text, p.Width()-indent)
}

// Broken breaks each line of a text between words for a terminal of this width; 0: it is not one.
func Broken(text string, width int) string {
	if width == 0 {
		return text
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.Join(breakText(line, width), "\n")
	}
	return strings.Join(lines, "\n")
}

// breakText breaks a text between words into lines of a width. A word that is too long stays whole.
func breakText(text string, width int) (lines []string) {
	line := ""
	for word := range strings.SplitSeq(text, " ") {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			lines, line = append(lines, line), word
			continue
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}

// Fact adds a line with a name and a text.
func (p *Page) Fact(name, text string) { p.InkedFact(InkPlain, name, text) }

// InkedFact adds a line with a name and a text in a colour.
func (p *Page) InkedFact(i Ink, name, text string) {
	const indent = 12
	p.Put(InkFaint, "  "+name+strings.Repeat(" ", max(0, indent-3-len(name)))+" ")
	p.Put(i, strings.Join(p.broken(OneLine(Safe(text)), indent), "\n"+strings.Repeat(" ", indent)))
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
	// Drop says, in a heading, how early a terminal that is too narrow leaves out the column: the highest first. 0: only after
	// the texts are cut.
	Drop int
}

// wrapLines is how many lines the last cell of a row has at most.
const wrapLines = 4

// Table adds rows with aligned columns. The first row is the heading. On a terminal that is too narrow, columns with a Drop are left out
// first, then the last column continues on more lines, and then the widest text columns are cut.
func (p *Page) Table(rows [][]Cell) {
	rows = slices.Clone(rows)
	for n, r := range rows {
		rows[n] = slices.Clone(r)
		for i := range r {
			rows[n][i].Text = Safe(r[i].Text) // measure the text as it is shown
		}
	}
	widths, number := measured(rows)
	if width := p.out.Width(); width > 0 && len(rows) > 0 {
		left := []string{}
		for over(readable(widths, number), width) > 0 {
			at := droppable(rows[0])
			if at < 0 {
				break
			}
			left = append(left, strings.ToLower(rows[0][at].Text))
			for n, r := range rows {
				if at < len(r) {
					rows[n] = slices.Delete(r, at, at+1)
				}
			}
			widths, number = measured(rows)
		}
		fitColumns(widths, number, width)
		if fit := fittingColumns(widths, width); fit < len(widths) {
			for _, c := range rows[0][min(fit, len(rows[0])):] {
				left = append(left, strings.ToLower(c.Text))
			}
			for n, r := range rows {
				rows[n] = r[:min(fit, len(r))]
			}
		}
		if len(left) > 0 {
			defer p.Note("(left out: " + strings.Join(left, ", ") + "; a wider terminal has them)")
		}
	}
	for n, r := range rows {
		p.row(r, widths, n == 0)
	}
}

// row adds a row. Its last cell continues below itself.
func (p *Page) row(r []Cell, widths []int, head bool) {
	indent := 0
	for i, c := range r {
		if head {
			c.Ink = InkFaint
		}
		if i < len(r)-1 {
			p.Put(c.Ink, c.padded(widths[i], false))
			p.Put(InkPlain, "  ")
			indent += widths[i] + 2
			continue
		}
		if c.Number || utf8.RuneCountInString(c.Text) <= widths[i] {
			p.Put(c.Ink, c.padded(widths[i], true))
			continue
		}
		lines := breakText(c.Text, widths[i])
		if len(lines) > wrapLines {
			lines = append(lines[:wrapLines-1:wrapLines-1], strings.Join(lines[wrapLines-1:], " "))
		}
		for n, line := range lines {
			if n > 0 {
				p.Put(InkPlain, "\n"+strings.Repeat(" ", indent))
			}
			p.Put(c.Ink, Cut(line, widths[i]))
		}
	}
	p.Line()
}

// measured returns how wide columns are, and which have numbers.
func measured(rows [][]Cell) (widths []int, number []bool) {
	for _, r := range rows {
		for i, c := range r {
			if i == len(widths) {
				widths, number = append(widths, 0), append(number, c.Number)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(c.Text))
		}
	}
	return widths, number
}

// readable returns the widths of columns whose texts are cut as far as they can still be read.
func readable(widths []int, number []bool) []int {
	const enough = 40
	out := slices.Clone(widths)
	for i := range out {
		if !number[i] {
			out[i] = min(out[i], enough)
		}
	}
	return out
}

// droppable returns the column that is left out first, or -1.
func droppable(head []Cell) int {
	at := -1
	for i, c := range head {
		if c.Drop > 0 && (at < 0 || c.Drop > head[at].Drop) {
			at = i
		}
	}
	return at
}

// over returns how much wider columns are than a terminal.
func over(widths []int, width int) int {
	sum := 2*(len(widths)-1) - width
	for _, w := range widths {
		sum += w
	}
	return sum
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

// fittingColumns returns how many of the columns fit a terminal: at least the first two.
func fittingColumns(widths []int, width int) int {
	used := -2
	for i, w := range widths {
		if used += w + 2; used > width && i >= 2 {
			return i
		}
	}
	return len(widths)
}

// fitColumns cuts the widest text columns until all columns fit, or none can be cut further.
func fitColumns(widths []int, number []bool, width int) {
	const least = 8
	for over := over(widths, width); over > 0; over-- {
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
