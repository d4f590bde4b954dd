package report

import (
	"slices"
	"strings"
)

// Label names the run of the blocks of a section, for reports of several runs.
func (s *Section) Label(run string) {
	for i := range s.Blocks {
		b := &s.Blocks[i]
		if b.Table != nil {
			b.Table.insert(run)
		}
		if b.Table == nil || b.Drawing != "" || b.Heat != nil {
			b.Title = strings.TrimPrefix(b.Title+" · "+run, " · ")
		}
	}
}

// insert adds a column with the run of each row: the first column, or the second if rows are grouped by the first.
func (t *Table) insert(run string) {
	at := 0
	if t.Grouped {
		at = 1
	}
	t.Columns = slices.Insert(t.Columns, at, Key("run"))
	for i := range t.Rows {
		t.Rows[i] = slices.Insert(t.Rows[i], at, Word(run))
	}
	if t.Track >= 0 {
		t.Track++
	}
}

// Join adds the sections of another run. Tables of the same name become one.
func (d *Document) Join(sections []Section) {
	for _, s := range sections {
		at := slices.IndexFunc(d.Sections, func(o Section) bool { return o.ID == s.ID })
		if at < 0 {
			d.Sections = append(d.Sections, s)
			continue
		}
		for _, b := range s.Blocks {
			d.Sections[at].join(b)
		}
	}
}

func (s *Section) join(b Block) {
	for i := range s.Blocks {
		t := s.Blocks[i].Table
		if t == nil || b.Table == nil || t.Name != b.Table.Name || b.Drawing != "" || b.Heat != nil || len(t.Columns) != len(b.Table.Columns) {
			continue
		}
		t.Rows = append(t.Rows, b.Table.Rows...)
		if t.Grouped {
			t.Regroup()
		}
		return
	}
	s.Blocks = append(s.Blocks, b)
}

// Regroup puts rows of one group together, in the order in which the groups first appear. Rows beyond MaxRows stay
// behind.
func (t *Table) Regroup() {
	order := map[string]int{}
	for _, r := range t.Rows {
		if _, ok := order[r[0].Text]; !ok {
			order[r[0].Text] = len(order)
		}
	}
	rows := t.Rows
	if t.MaxRows > 0 {
		rows = rows[:min(len(rows), t.MaxRows)]
	}
	slices.SortStableFunc(rows, func(a, b []Cell) int { return order[a[0].Text] - order[b[0].Text] })
}
