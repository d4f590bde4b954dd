package cli

import (
	"context"
	"slices"
	"strings"

	"parley/internal/cli/exit"
	"parley/internal/export"
	"parley/internal/view/optional"
	"parley/world"
	"parley/world/program"
)

// exporter is a command of a kind that also writes for export.
type exporter struct {
	program.Exporter
	kind            world.Kind
	tables, formats []string
}

// exporters returns them. One that fails to say what it writes is left out, and standard error says so.
func (s *State) exporters() (all []exporter) {
	for _, k := range s.Kinds {
		for verb, of := range s.verbs {
			e, ok := verb.(program.Exporter)
			if !ok || of.Name != k.Name {
				continue
			}
			one := exporter{Exporter: e, kind: of}
			failed := optional.Call(of, "the command", func() error { one.tables, one.formats = e.Tables(), e.Formats(); return nil })
			if failed != nil {
				s.tell(failed.Error())
				continue
			}
			all = append(all, one)
		}
	}
	return all
}

// handOver runs the command of a kind that writes what the flags want. It reports whether there is one.
func (c *exportCmd) handOver(ctx context.Context, s *State) (done bool, err error) {
	for _, e := range s.exporters() {
		table, format := slices.Contains(e.tables, c.Table), slices.Contains(e.formats, c.Format)
		if !table && !format {
			continue
		}
		if table && !format {
			if own, err := c.ownTable(ctx, s); own || err != nil {
				return err != nil, err
			}
		}
		switch {
		case format && c.Table != "":
			return true, exit.Usagef("--as %s writes the records that a trainer reads, not a table; leave out --table", c.Format)
		case len(c.Columns) > 0:
			return true, exit.Usagef("--columns: what is written for training has all of its columns; leave out --columns")
		case len(c.Files) > 1:
			return true, exit.Usagef("what is written for training is of one run; name one file")
		}
		verb := e.Export(program.Export{File: c.File, Table: c.Table, Format: c.Format, Out: c.Out, Force: c.Force})
		s.verbs[verb] = e.kind
		return true, runVerb(ctx, s, verb)
	}
	return false, nil
}

// ownTable reports whether the kind of the run has a table of this name itself.
func (c *exportCmd) ownTable(ctx context.Context, s *State) (bool, error) {
	stores, kind, err := c.open(ctx, s)
	if err != nil {
		return false, err
	}
	return slices.Contains(export.AllTables(kind), export.Table(c.Table)), stores.close()
}

// trainerFormats lists the formats of exporters, for an error.
func (s *State) trainerFormats() string {
	var all []string
	for _, e := range s.exporters() {
		all = append(all, e.formats...)
	}
	if len(all) == 0 {
		return ""
	}
	return "; or, for a trainer, one of " + strings.Join(all, ", ")
}
