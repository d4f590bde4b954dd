package viewer

import (
	"fmt"
	"html/template"
	"slices"
	"strings"

	"parley/internal/read/report"
)

// maxElements is how many elements the statistics have on a page, and maxRows how many rows a table has. Browsers get
// slow with many, and the report has everything.
const (
	maxElements = 2000
	maxRows     = 50
	minRows     = 3 // fewer are not worth a table
)

// brief returns the sections of a report without what other pages show, and shortened: without the numbers of drawings,
// and with the first rows of long tables. Blocks that are folded come last. short reports whether anything is missing.
func brief(d *report.Document) (out []report.Section, short bool, err error) {
	t, err := report.Templates()
	if err != nil {
		return nil, false, err
	}
	for _, s := range d.Sections {
		if s.ID == "episodes" || s.ID == "transcripts" {
			continue
		}
		s.Blocks = slices.DeleteFunc(slices.Clone(s.Blocks), func(b report.Block) bool { return b.OffPage || b.Facts != nil && s.ID == "overview" })
		if s.ID == "overview" {
			s.Title = "" // the page has its facts
		}
		out = append(out, s)
	}
	left := maxElements
	for _, folded := range []bool{false, true} {
		for i := range out {
			for j := range out[i].Blocks {
				b := &out[i].Blocks[j]
				if b.Folded != folded {
					continue
				}
				size, cut, err := shorten(t, b, left)
				if err != nil {
					return nil, false, err
				}
				left -= size
				short = short || cut
			}
		}
	}
	for i := range out {
		out[i].Blocks = slices.DeleteFunc(out[i].Blocks, func(b report.Block) bool { return b.OffPage })
	}
	return out, short, nil
}

// shorten shortens a block to left elements. If that cannot be done, the block is not on the page.
func shorten(t *template.Template, b *report.Block, left int) (size int, cut bool, err error) {
	if (b.Drawing != "" || b.Heat != nil) && b.Table != nil {
		b.Table, cut = nil, true
	}
	if b.Table != nil && len(b.Table.Rows) > maxRows {
		cut = true
		first(b, maxRows)
	}
	if size, err = report.Size(t, *b); err != nil || size <= left {
		return size, cut, err
	}
	if b.Table != nil {
		if rows := len(b.Table.Rows) * left / size; rows >= minRows {
			b.Caption, _ = strings.CutPrefix(b.Caption, said(maxRows))
			first(b, rows)
			size, err = report.Size(t, *b)
			return size, true, err
		}
	}
	b.OffPage = true
	return 0, true, nil
}

// first cuts the table of a block to its first rows, and says so.
func first(b *report.Block, rows int) {
	t := *b.Table
	t.Rows = t.Rows[:rows]
	b.Table = &t
	b.Caption = said(rows) + b.Caption
}

func said(rows int) string { return fmt.Sprintf("The first %d rows. ", rows) }
