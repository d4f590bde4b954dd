package cli

import (
	"strings"
	"unicode/utf8"

	"parley/internal/report"
	doc "parley/internal/report/page"
	"parley/internal/stats"
)

// printDocument adds what of a report is for the terminal: facts, words, and tables that are
// not too long. What it leaves out of what the kind shows is named.
func printDocument(p *page, d *doc.Document) {
	for _, s := range d.Sections {
		b := p.part()
		var left []string
		for _, block := range s.Blocks {
			empty := block.Title == "" || block.Table != nil && len(block.Table.Rows) == 0
			if !printBlock(b, block) && s.ID == report.KindSection && !empty {
				left = append(left, oneLine(block.Title))
			}
		}
		if len(left) > 0 {
			if !b.empty() {
				b.line()
			}
			b.put(inkFaint, "(shown on the page only, with --html: "+strings.Join(left, "; ")+"; --json and --csv have the numbers)\n")
		}
		if b.empty() && len(s.Blocks) > 0 {
			continue // it is for the page only
		}
		if !p.empty() {
			p.line()
		}
		p.put(inkHead, s.Title+"\n")
		if b.empty() {
			p.line(s.Text)
		}
		p.add(b)
	}
}

// printBlock adds a block, unless there is nothing in it for the terminal.
func printBlock(p *page, b doc.Block) (shown bool) {
	if t := b.Table; t != nil && !t.Quiet && len(t.Rows) > 0 {
		if !p.empty() {
			p.line()
		}
		if b.Title != "" {
			p.put(inkFaint, b.Title+"\n")
		}
		printTable(p, t)
		return true
	}
	lines := b.List
	if b.Text != "" && b.Table == nil && b.Drawing == "" && !b.Pre {
		lines = append(lines, b.Text)
	}
	if len(lines) == 0 {
		return false
	}
	if !p.empty() {
		p.line()
	}
	if b.Title != "" {
		p.put(inkFaint, b.Title+"\n")
	}
	for _, l := range lines {
		p.behind(inkFaint, "-", l)
	}
	return true
}

// printTable adds a table of a report. Where it is too
// wide for the terminal, intervals are.
func printTable(p *page, t *doc.Table) {
	t = t.Trimmed()
	rows := reportRows(t, false)
	if width := p.width(); t.Sketch && (width == 0 || tableWidth(rows)+sketchWidth+2 <= width) {
		rows = sketched(t, rows)
	}
	if width := p.width(); width > 0 && tableWidth(rows) > width {
		short := reportRows(t, true)
		if tableWidth(short) < tableWidth(rows) {
			rows = short
			defer p.put(inkFaint, "(intervals are left out: they need a wider terminal, or --json)\n")
		}
	}
	p.table(rows)
	if t.Rest != "" {
		p.put(inkFaint, t.Rest+"\n")
	}
}

// sketchWidth is how wide a column drawn with characters is.
const sketchWidth = 25

// sketched adds what the table's tracked column looks like.
func sketched(t *doc.Table, rows [][]cell) [][]cell {
	rows[0] = append(rows[0], cell{})
	for i, line := range t.Sketches(sketchWidth) {
		rows[i+1] = append(rows[i+1], cell{text: line})
	}
	return rows
}

func reportRows(t *doc.Table, short bool) [][]cell {
	var head []cell
	for _, c := range t.Columns {
		head = append(head, cell{text: strings.ToUpper(c.Name), number: c.Number})
	}
	rows := [][]cell{head}
	for _, r := range t.Rows {
		var row []cell
		for i, c := range r {
			text, ink := oneLine(c.Text), inkPlain
			if q, ok := c.Value.(stats.Quantity); ok && short {
				text, _, _ = strings.Cut(doc.Interval(q), " ")
			}
			if t.Columns[i].Key {
				ink = inkName
			}
			row = append(row, cell{ink: ink, text: text, number: t.Columns[i].Number})
		}
		rows = append(rows, row)
	}
	return rows
}

// tableWidth is how wide a table would be if no column were cut below its head.
func tableWidth(rows [][]cell) int {
	width := 0
	for i := range rows[0] {
		widest := 0
		for _, r := range rows {
			n := utf8.RuneCountInString(r[i].text)
			if !r[i].number {
				n = min(n, 8)
			}
			widest = max(widest, n)
		}
		width += widest + 2
	}
	return width - 2
}
