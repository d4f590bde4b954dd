package export

import (
	"context"
	"fmt"
	"slices"

	"parley/internal/run/results"
	"parley/world"
)

// AllTables lists the tables of a run of a kind: Tables, and those that the kind makes.
func AllTables(kind world.Kind) []Table {
	all := tables()
	for _, t := range noteTables(kind) {
		all = append(all, Table(t.Name))
	}
	return all
}

// noteTables returns the tables that a kind makes.
func noteTables(kind world.Kind) []world.NoteTable {
	if maker, ok := world.As[world.Tabulator](kind); ok {
		return maker.Tables()
	}
	return nil
}

// noteTable returns a table that a kind makes, or nil.
func noteTable(kind world.Kind, name Table) *world.NoteTable {
	all := noteTables(kind)
	if i := slices.IndexFunc(all, func(t world.NoteTable) bool { return t.Name == string(name) }); i >= 0 {
		return &all[i]
	}
	return nil
}

// noteRow is a row of a table that a kind makes.
type noteRow struct {
	run string
	world.Played
	cells []any
}

// notes writes a table that the kind makes from the notes of each episode that ended.
func (x *export) notes(ctx context.Context, t *world.NoteTable) error {
	run, err := results.Fold(ctx, x.store, x.store.Path())
	if err != nil {
		return err
	}
	run.Know(x.kind)
	columns := noteColumns(t)
	return run.EachWithData(ctx, x.store, func(p world.Played) error {
		if x.without[p.Episode] {
			return nil
		}
		episode, err := results.Read(ctx, x.store, run.Head, x.kind, p.Episode)
		if err != nil {
			return err
		}
		var rows [][]any
		if err := results.Call(x.kind, "Tables", func() error { rows = t.Rows(p, episode.Notes); return nil }); err != nil {
			return fmt.Errorf("export: the table %s of episode %d: %w", t.Name, p.Episode, err)
		}
		for _, cells := range rows {
			if err := put(x, columns, &noteRow{run: x.run, Played: p, cells: cells}); err != nil {
				return err
			}
		}
		return nil
	})
}

// noteColumns returns the columns of a table that a kind makes.
func noteColumns(t *world.NoteTable) []column[noteRow] {
	all := []column[noteRow]{
		few("run", "the id of the run", func(r *noteRow) cell { return text(r.run) }),
		col("episode", Integer, "the number of its episode, from 0", func(r *noteRow) cell { return integer(r.Episode) }),
		few("cell", "the cell of the matrix that the episode repeats", func(r *noteRow) cell { return some(r.Spec.Cell) }),
		col("deal", Integer, "what the episode's random draws depend on", func(r *noteRow) cell { return integer(r.Spec.Deal) }),
	}
	for i, c := range t.Columns {
		all = append(all, col(c.Name, Type(c.Type), c.Doc, func(r *noteRow) cell {
			if i >= len(r.cells) {
				return cell{}
			}
			return noteCell(c.Type, r.cells[i])
		}))
	}
	return all
}

// noteCell returns a value, or null if it is not of the type of its column.
func noteCell(t world.NoteType, v any) cell {
	switch v := v.(type) {
	case string:
		if t == world.NoteText {
			return some(v)
		}
	case int:
		if t == world.NoteInteger {
			return integer(v)
		}
	case float64:
		if t == world.NoteDouble {
			return double(v)
		}
	case bool:
		if t == world.NoteBoolean {
			return boolean(v)
		}
	}
	return cell{}
}
