package page

import (
	"slices"
	"strings"
)

// Label says whose the blocks of a section are, where there are several runs.
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

// insert adds a column that says which run a row is of: the first, or the one after what
// rows are grouped by.
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

// Join puts sections behind those of the runs before: tables of one name become one.
func (d *Document) Join(sections []Section) {
	for _, s := range sections {
		at := -1
		for i := range d.Sections {
			if d.Sections[i].ID == s.ID {
				at = i
			}
		}
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

// Regroup puts rows of one group together again, groups in the order they came in. Rows that are
// shown stay before those that are not.
func (t *Table) Regroup() {
	place := map[string]int{}
	for _, r := range t.Rows {
		if _, ok := place[r[0].Text]; !ok {
			place[r[0].Text] = len(place)
		}
	}
	rows := t.Rows
	if t.Most > 0 {
		rows = rows[:min(len(rows), t.Most)]
	}
	slices.SortStableFunc(rows, func(a, b []Cell) int { return place[a[0].Text] - place[b[0].Text] })
}
