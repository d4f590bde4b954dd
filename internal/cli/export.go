package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"parley/internal/cli/exit"
	"parley/internal/cli/output"
	"parley/internal/cli/terminal"
	"parley/internal/kit/text"
	"parley/internal/read/export"
	"parley/internal/read/report"
	"parley/internal/read/training"
	"parley/internal/run/merge"
	"parley/internal/run/runfile"
	"parley/journal"
	"parley/world"
)

// exportCmd writes a run as tables for other programs.
type exportCmd struct {
	Files   []string `arg:"" placeholder:"FILE" help:"Run files. Several files give one table: the column run says which run a row belongs to, and an episode that is in two files is exported once. Runs may still be in progress."`
	Table   string   `placeholder:"TABLE" help:"What to export: calls, episodes, messages, scores, labels, a table of the kind that was played, or all. Default: calls. For data to train on: see the command trajectories."`
	Format  string   `placeholder:"FORMAT" help:"jsonl, csv or parquet; inspect for a log that Inspect's viewer shows; atif for trajectories that Harbor reads; or folder for readable files of every episode, if the kind writes any. Default: the ending of --out; else jsonl, and parquet for --table all."`
	Out     string   `placeholder:"FILE" help:"The file to write; with --table all, --format folder or atif, the folder. Default: standard output."`
	Columns []string `placeholder:"COLUMN,…" help:"Write only these columns, which is faster. Default: all."`
	Force   bool     `help:"Overwrite existing files."`
	MaxSize int64    `placeholder:"MB" help:"Write at most so many megabytes for each file, before they are compressed. A text that many calls repeat is in the run file once, and is written as often as it occurs. Default: 64 times the size of the run files, and at least 256."`

	File string `kong:"-"` // the first of Files
}

// tableAll selects every table.
const tableAll = "all"

// Run writes the tables.
func (c *exportCmd) Run(ctx context.Context, s *State) (err error) {
	c.File = c.Files[0]
	if c.MaxSize < 0 || c.MaxSize > math.MaxInt64/1_000_000 {
		return exit.Usagef("--max-size %d: want a number of megabytes", c.MaxSize)
	}
	c.Table = cmp.Or(c.Table, string(export.Calls))
	switch {
	case len(c.Columns) > 0 && (c.Format == formatFolder || c.Format == formatATIF || c.isInspect() || c.Table == tableAll):
		return exit.Usagef("--columns: only one table has columns to choose from, not --table all, a log of Inspect, trajectories or a folder")
	case len(c.Files) > 1 && (c.Format == formatFolder || c.Format == formatATIF || c.isInspect()):
		return exit.Usagef("only tables can be exported from several run files; name one file")
	case c.Format == formatFolder:
		return c.folders(ctx, s)
	case c.Format == formatATIF:
		return c.atif(ctx, s)
	case c.isInspect():
		return c.inspect(ctx, s)
	}
	format, err := c.format()
	if err != nil {
		return err
	}
	if out, ok := s.Stdout.(*terminal.Stream); c.Out == "" && format == export.Parquet && ok && out.Width() > 0 {
		return exit.Usagef("parquet is binary and cannot be shown on a terminal; name a file with --out, or redirect standard output")
	}
	stores, kind, err := c.open(ctx, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stores.close()) }()
	if err := c.checkTable(s, kind); err != nil {
		return err
	}
	files, err := c.files(kind, format)
	if err != nil {
		return err
	}
	ctx, end := untilSignal(ctx, s)
	defer end()
	runs, err := c.runs(ctx, s, stores)
	if err != nil {
		return err
	}
	if c.Out == "" {
		before := lostIn(runs)
		_, err := export.Write(ctx, s.Stdout, runs, export.Table(c.Table), format, c.sizeLimit(), c.Columns...)
		err = cmp.Or(pipeEnd(playError(c.File, moreWith(err))), reportLosses(s, stores...))
		if !slices.Equal(lostIn(runs), before) {
			s.tell("whole rows of these episodes may have been written before the damage was found; with --out there are none")
		}
		return err
	}
	if err := c.folder(); err != nil {
		return err
	}
	for _, f := range files {
		if err := c.writeFile(ctx, s, runs, f, format); err != nil {
			return playError(c.File, moreWith(err))
		}
	}
	return reportLosses(s, stores...)
}

// sizeLimit returns how many bytes each file may have; 0: as many as is usual.
func (c *exportCmd) sizeLimit() int64 { return c.MaxSize * 1e6 }

// moreWith adds to a SizeError how to write more.
func moreWith(err error) error {
	if large, ok := errors.AsType[*export.SizeError](err); ok {
		return exit.Usagef("%w; choose columns without them (--columns), or allow more with --max-size MB", large)
	}
	return err
}

// checkTable refuses a table that a run of the kind does not have, and columns that the table does not have.
func (c *exportCmd) checkTable(s *State, kind world.Kind) error {
	var tables, columns []string
	for _, t := range export.AllTables(kind) {
		tables = append(tables, string(t))
	}
	if tables = append(tables, tableAll); !slices.Contains(tables, c.Table) {
		hint := toTrainOn(c.Table)
		if slices.Contains(Verbs(s.Kinds), c.Table) {
			hint = "; there is a command of that name: parley " + c.Table
		}
		return exit.Usagef("--table: unknown table %q%s%s", c.Table, text.Want(c.Table, tables), hint)
	}
	for _, column := range export.ColumnsOf(kind, export.Table(c.Table)) {
		columns = append(columns, column.Name)
	}
	for _, name := range c.Columns {
		if !slices.Contains(columns, name) {
			return exit.Usagef("--columns: the table %s has no column %q%s", c.Table, name, text.Want(name, columns))
		}
	}
	return nil
}

// open opens the run files, and returns the kind of the first run.
func (c *exportCmd) open(ctx context.Context, s *State) (stores runFiles, kind world.Kind, err error) {
	for i, file := range c.Files {
		store, about, err := openRun(ctx, file)
		if err != nil {
			return nil, kind, errors.Join(err, stores.close())
		}
		if i == 0 {
			kind = s.kindOf(about.Begun)
		}
		stores = append(stores, store)
	}
	return stores, kind, nil
}

// runs returns the runs to export. An episode that several runs contain is exported from the first of them.
func (c *exportCmd) runs(ctx context.Context, s *State, stores runFiles) ([]export.Run, error) {
	if len(stores) == 1 {
		return []export.Run{c.run(ctx, s, stores[0], nil)}, nil
	}
	var sources []report.Source
	err := stores.read(ctx, s, c.Files, func(runs []report.Source) error { sources = runs; return nil })
	if err != nil {
		return nil, err
	}
	drop, shared, err := merge.Duplicates(ctx, mergeable(sources))
	if err != nil {
		return nil, err
	}
	for _, both := range shared {
		fmt.Fprintln(s.Stderr, "parley: "+terminal.Safe(both.String()))
	}
	runs := make([]export.Run, len(stores))
	for i, store := range stores {
		runs[i] = c.run(ctx, s, store, drop[i])
	}
	return runs, nil
}

// run returns a run to export, with the scores that were added to it.
func (c *exportCmd) run(ctx context.Context, s *State, store *runfile.Store, without map[int]bool) export.Run {
	r := export.Run{Store: store, Without: without}
	about, err := store.Outline(ctx)
	if err != nil || about.Begun == nil {
		return r
	}
	r.Kind = s.kindOf(about.Begun)
	if c.Table == string(export.Scores) || c.Table == tableAll {
		r.Added = s.addedScores(ctx, store.Path(), about.Begun.Run).By
	}
	return r
}

// format returns the format of --format, or the one that the name of the file implies.
func (c *exportCmd) format() (export.Format, error) {
	given, ext := c.Format, strings.TrimPrefix(strings.ToLower(filepath.Ext(c.Out)), ".")
	switch {
	case c.Format == "" && c.Table == tableAll:
		return export.Parquet, nil
	case c.Format == "" && c.Out == "":
		return export.JSONL, nil
	case c.Format == "":
		given = ext
	}
	for _, f := range export.Formats() {
		if string(f) == given {
			return f, nil
		}
	}
	if c.Format == "" {
		return "", exit.Usagef("--out %s: unknown format; use a name that ends in .jsonl, .csv, .parquet or .eval, or set --format", c.Out)
	}
	return "", exit.Usagef("--format: unknown format %q; want one of jsonl, csv, parquet, inspect for a log of Inspect, atif for trajectories, or folder for files to read%s", c.Format, toTrainOn(c.Format))
}

// exportFile is a file to write.
type exportFile struct {
	table export.Table
	path  string
}

func (c *exportCmd) writeFile(ctx context.Context, s *State, runs []export.Run, f exportFile, format export.Format) error {
	rows := 0
	write := func() error {
		before := lostIn(runs)
		return c.output(f.path).Write(func(w io.Writer) (err error) {
			rows, err = export.Write(ctx, w, runs, f.table, format, c.sizeLimit(), c.Columns...)
			if err == nil && !slices.Equal(lostIn(runs), before) {
				err = runfile.ErrDamaged // rows of an episode found to be damaged only now may already be written
			}
			return err
		})
	}
	err := write()
	if errors.Is(err, runfile.ErrDamaged) {
		err = nil
		for _, r := range runs {
			err = cmp.Or(err, r.Store.Salvage(ctx))
		}
		if err == nil {
			err = write()
		}
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(s.Stdout, "wrote %s: %s rows of %s\n", f.path, terminal.Number(rows), f.table)
	return err
}

// lostIn returns the losses of each run.
func lostIn(runs []export.Run) (lost []*runfile.Losses) {
	for _, r := range runs {
		lost = append(lost, r.Store.Lost())
	}
	return lost
}

// files returns the files of --out, after a check that they may be written.
func (c *exportCmd) files(kind world.Kind, format export.Format) ([]exportFile, error) {
	if c.Table == tableAll && c.Out == "" {
		return nil, exit.Usagef("--table all: name the folder to write to with --out")
	}
	if c.Out == "" {
		return nil, nil
	}
	files := []exportFile{{export.Table(c.Table), c.Out}}
	if c.Table == tableAll {
		files = nil
		for _, t := range export.AllTables(kind) {
			files = append(files, exportFile{t, filepath.Join(c.Out, string(t)+"."+string(format))})
		}
	}
	if _, err := os.Stat(c.Out); errors.Is(err, fs.ErrNotExist) && c.Table == tableAll {
		return files, nil // the folder will be created
	}
	for _, f := range files {
		if _, err := c.output(f.path).Check(); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// output returns a file of --out.
func (c *exportCmd) output(path string) output.File {
	return output.File{Flag: "--out", Path: path, Force: c.Force, Inputs: c.Files, Inside: path != c.Out}
}

// folder creates the folder of --table all.
func (c *exportCmd) folder() error {
	if c.Table != tableAll {
		return nil
	}
	if err := os.Mkdir(c.Out, 0o750); err != nil && !errors.Is(err, fs.ErrExist) {
		return exit.Usagef("--out: %w", err)
	}
	if info, err := os.Stat(c.Out); err == nil && !info.IsDir() {
		return exit.Usagef("--out: %s is a file: --table all writes into a folder", c.Out)
	}
	return nil
}

// formatInspect writes the run as one log for Inspect.
const formatInspect = "inspect"

// inspectEnding is the file name ending by which inspect_ai recognizes a log.
const inspectEnding = ".eval"

// isInspect reports whether a log for Inspect is wanted.
func (c *exportCmd) isInspect() bool {
	return c.Format == formatInspect || c.Format == "" && strings.ToLower(filepath.Ext(c.Out)) == inspectEnding
}

// inspect writes the log.
func (c *exportCmd) inspect(ctx context.Context, s *State) error {
	out, isStream := s.Stdout.(*terminal.Stream)
	switch {
	case c.Table != "calls":
		return exit.Usagef("--format inspect writes a log, not a table; leave out --table")
	case c.Out == "" && isStream && out.Width() > 0:
		return exit.Usagef("a log of Inspect cannot be shown on a terminal; name a file that ends in %s with --out", inspectEnding)
	case c.Out != "" && strings.ToLower(filepath.Ext(c.Out)) != inspectEnding:
		return exit.Usagef("--out %s: Inspect only reads a log whose name ends in %s", c.Out, inspectEnding)
	}
	if c.Out != "" {
		if _, err := c.output(c.Out).Check(); err != nil {
			return err
		}
	}
	nothing := func(*journal.Begun) error { return nil }
	return c.wholeRun(ctx, s, nothing, func(ctx context.Context, store *runfile.Store, kind world.Kind) (wrote string, err error) {
		var got export.Written
		write := func(w io.Writer) (err error) {
			got, err = export.WriteInspect(ctx, w, store, kind, c.sizeLimit())
			return err
		}
		if c.Out != "" {
			err = c.output(c.Out).Write(write)
			return terminal.Several(got.Count, "sample", "samples") + notEnded("; ", got.LeftOut, ""), err
		}
		if err = write(s.Stdout); err == nil {
			fmt.Fprint(s.Stderr, notEnded("parley: ", got.LeftOut, "\n"))
		}
		return "", err
	})
}

// wholeRun exports a run as something other than tables. ready checks where the output goes, before anything is read. write writes it, and
// says what it wrote; it is called again, without the damaged episodes, if the file is damaged and standard output got nothing.
func (c *exportCmd) wholeRun(ctx context.Context, s *State, ready func(*journal.Begun) error, write func(context.Context, *runfile.Store, world.Kind) (wrote string, err error)) (err error) {
	store, about, err := openRun(ctx, c.File)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if err := ready(about.Begun); err != nil {
		return err
	}
	kind := s.kindOf(about.Begun)
	ctx, end := untilSignal(ctx, s)
	defer end()
	if c.Out == "" {
		_, err := write(ctx, store, kind)
		return pipeEnd(playError(c.File, moreWith(err)))
	}
	var wrote string
	left, err := readUndamaged(ctx, s, store, func() (err error) {
		wrote, err = write(ctx, store, kind)
		return err
	})
	if err != nil {
		return playError(c.File, moreWith(err))
	}
	_, err = fmt.Fprintf(s.Stdout, "wrote %s: %s\n", c.Out, wrote)
	return cmp.Or(err, left)
}

// notEnded explains, between two texts, why an output has fewer episodes than the run; empty if it has all.
func notEnded(before string, n int, after string) string {
	if n == 0 {
		return ""
	}
	return before + terminal.Several(n, "episode that has not ended is left out", "episodes that have not ended are left out") + after
}

// toTrainOn returns what an error adds about the name of something to train on.
func toTrainOn(name string) string {
	if name != string(training.Sequences) && !slices.Contains(trainingShapes(), name) {
		return ""
	}
	return "; for a trainer: parley trajectories --shape " + name
}
