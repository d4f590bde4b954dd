package cli

import (
	"strings"
	"unicode/utf8"

	"parley/internal/cli/terminal"
	"parley/internal/kit/statmath"
	"parley/internal/read/report"
)

// printDocument adds the parts of a report that fit a terminal: facts, texts, and tables that are not too long.
// It names the parts of the kind that it leaves out.
func printDocument(p *terminal.Page, d *report.Document) {
	for _, s := range d.Sections {
		b := p.Part()
		var left []string
		for _, block := range s.Blocks {
			empty := block.Title == "" || block.Table != nil && len(block.Table.Rows) == 0
			if !printBlock(b, block) && s.ID == report.KindSection && !empty {
				left = append(left, terminal.OneLine(block.Title))
			}
		}
		if len(left) > 0 {
			if !b.Empty() {
				b.Line()
			}
			b.Put(terminal.InkFaint, "(shown on the page only, with --html: "+strings.Join(left, "; ")+"; --json and --csv have the numbers)\n")
		}
		if b.Empty() && len(s.Blocks) > 0 {
			continue // for the page only
		}
		if !p.Empty() {
			p.Line()
		}
		p.Put(terminal.InkHead, s.Title+"\n")
		if b.Empty() {
			p.Line(s.Text)
		}
		p.Add(b)
	}
}

// printBlock adds a block. shown is false if the block has nothing for the terminal.
func printBlock(p *terminal.Page, b report.Block) (shown bool) {
	if t := b.Table; t != nil && !t.Quiet && len(t.Rows) > 0 {
		if !p.Empty() {
			p.Line()
		}
		if b.Title != "" {
			p.Put(terminal.InkFaint, b.Title+"\n")
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
	if !p.Empty() {
		p.Line()
	}
	if b.Title != "" {
		p.Put(terminal.InkFaint, b.Title+"\n")
	}
	for _, l := range lines {
		p.Behind(terminal.InkFaint, "-", l)
	}
	return true
}

// printTable adds a table of a report. If it is too wide for the terminal, the intervals are left out.
func printTable(p *terminal.Page, t *report.Table) {
	t = t.Trimmed()
	rows := reportRows(t, false)
	if width := p.Width(); t.Sketch && (width == 0 || tableWidth(rows)+sketchWidth+2 <= width) {
		rows = sketched(t, rows)
	}
	if width := p.Width(); width > 0 && tableWidth(rows) > width {
		short := reportRows(t, true)
		if tableWidth(short) < tableWidth(rows) {
			rows = short
			defer p.Put(terminal.InkFaint, "(intervals are left out: they need a wider terminal, or --json)\n")
		}
	}
	p.Table(rows)
	if t.Rest != "" {
		p.Put(terminal.InkFaint, t.Rest+"\n")
	}
}

// sketchWidth is the width of a column that is drawn with characters.
const sketchWidth = 25

// sketched adds a sketch of the table's tracked column.
func sketched(t *report.Table, rows [][]terminal.Cell) [][]terminal.Cell {
	rows[0] = append(rows[0], terminal.Cell{})
	for i, line := range t.Sketches(sketchWidth) {
		rows[i+1] = append(rows[i+1], terminal.Cell{Text: line})
	}
	return rows
}

func reportRows(t *report.Table, short bool) [][]terminal.Cell {
	var head []terminal.Cell
	for _, c := range t.Columns {
		head = append(head, terminal.Cell{Text: strings.ToUpper(c.Name), Number: c.Number})
	}
	rows := [][]terminal.Cell{head}
	for _, r := range t.Rows {
		var row []terminal.Cell
		for i, c := range r {
			text, ink := terminal.OneLine(c.Text), terminal.InkPlain
			if q, ok := c.Value.(statmath.Quantity); ok && short {
				text, _, _ = strings.Cut(report.Interval(q), " ")
			}
			if t.Columns[i].Key {
				ink = terminal.InkName
			}
			row = append(row, terminal.Cell{Ink: ink, Text: text, Number: t.Columns[i].Number})
		}
		rows = append(rows, row)
	}
	return rows
}

// tableWidth is the width of a table with no column cut below its heading.
func tableWidth(rows [][]terminal.Cell) int {
	width := 0
	for i := range rows[0] {
		widest := 0
		for _, r := range rows {
			n := utf8.RuneCountInString(r[i].Text)
			if !r[i].Number {
				n = min(n, 8)
			}
			widest = max(widest, n)
		}
		width += widest + 2
	}
	return width - 2
}
