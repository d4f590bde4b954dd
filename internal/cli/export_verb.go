package cli

import (
	"context"
	"slices"
	"strings"

	"parley/internal/cli/exit"
	"parley/internal/read/export"
	"parley/internal/run/results"
	"parley/world"
	"parley/world/program"
)

// exporter is a command of a kind that also writes for export.
type exporter struct {
	program.Exporter
	kind           world.Kind
	tables, shapes []string
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
			failed := results.Call(of, "the command", func() error { one.tables, one.shapes = e.Tables(), e.Shapes(); return nil })
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
		table, shape := slices.Contains(e.tables, c.Table), slices.Contains(e.shapes, c.Shape)
		if !table && !shape {
			continue
		}
		if table && !shape {
			if own, err := c.ownTable(ctx, s); own || err != nil {
				return err != nil, err
			}
		}
		switch {
		case shape && c.Table != "":
			return true, exit.Usagef("--shape %s writes the records that a trainer reads, not a table; leave out --table", c.Shape)
		case len(c.Columns) > 0:
			return true, exit.Usagef("--columns: what is written for training has all of its columns; leave out --columns")
		case len(c.Files) > 1:
			return true, exit.Usagef("what is written for training is of one run; name one file")
		}
		verb := e.Export(program.Export{File: c.File, Table: c.Table, Shape: c.Shape, Format: c.Format, Out: c.Out, Force: c.Force})
		s.verbs[verb] = e.kind
		return true, runVerb(ctx, s, verb)
	}
	if c.Shape != "" {
		return true, exit.Usagef("--shape: unknown shape %q; want one of %s", c.Shape, strings.Join(s.shapes(), ", "))
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

// shapes lists the shapes of exporters.
func (s *State) shapes() (all []string) {
	for _, e := range s.exporters() {
		all = append(all, e.shapes...)
	}
	return all
}

// shapesFor returns what an error adds about a format that is a shape.
func (s *State) shapesFor(format string) string {
	if !slices.Contains(s.shapes(), format) {
		return ""
	}
	return "; for a trainer, use --shape " + format
}
