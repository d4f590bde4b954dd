package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"

	"parley/internal/report"
	doc "parley/internal/report/page"
	"parley/internal/view"
	"parley/world"
	"parley/worlds"
)

// reportCmd says what runs came to.
type reportCmd struct {
	Files       []string `arg:"" placeholder:"FILE" help:"Run files; several are shown side by side. They may be played meanwhile."`
	HTML        string   `name:"html" placeholder:"OUT" help:"Write one page with charts that needs nothing else."`
	Episodes    int      `default:"500" placeholder:"N" help:"Most episodes to list on the page. Default: ${default}."`
	Transcripts int      `default:"20" placeholder:"N" help:"Most episodes whose transcripts are on the page. Default: ${default}."`
	tableFlags
}

// tableFlags are the forms that tables can be had in.
type tableFlags struct {
	CSV  string `name:"csv" placeholder:"DIR" help:"Write every table as a CSV file into this folder."`
	JSON bool   `name:"json" help:"Print every table as JSON."`
}

// frugal is how much memory a reader of runs takes before it looks harder for what it can
// give back: a run may have a million calls, and a laptop other things to do.
const frugal = 300 << 20

// Run reports.
func (c *reportCmd) Run(ctx context.Context, s *State) (err error) {
	if c.Episodes < 0 || c.Transcripts < 0 {
		return usage("--episodes and --transcripts must not be negative")
	}
	if err := spare(c.HTML, c.Files); err != nil {
		return err
	}
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(frugal))
	var d *doc.Document
	stores, err := readRuns(ctx, c.Files, func(runs []report.Source) (err error) {
		d, err = report.Build(ctx, runs, report.Options{Tool: version(), Episodes: c.Episodes, Transcripts: c.Transcripts})
		return err
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stores.close()) }()
	if err := c.show(s, d); err != nil {
		return err
	}
	if c.HTML == "" {
		return leftOut(s, stores...)
	}
	if err := replaceFile(c.HTML, d.WriteHTML); err != nil {
		return fmt.Errorf("report: --html: %w", err)
	}
	fmt.Fprintf(s.Stderr, "parley: the page is %s\n", c.HTML)
	return leftOut(s, stores...)
}

// kindOf is the kind of a run, if it is one of ours as it was played.
func kindOf(r *view.Run) world.Kind {
	for _, k := range worlds.Standard() {
		if k.Name == r.Head.Begun.Kind && k.Version == r.Head.Begun.KindVersion {
			return k
		}
	}
	return world.Kind{}
}

// show puts the tables of a document where they are wanted: as JSON, as files, or on the
// terminal.
func (f *tableFlags) show(s *State, d *doc.Document) error {
	if f.CSV != "" {
		if err := writeTables(f.CSV, d.Tables()); err != nil {
			return fmt.Errorf("--csv: %w", err)
		}
	}
	if f.JSON {
		return printJSON(s.Stdout, d)
	}
	p := newPage(s)
	p.document(d)
	return p.flush()
}

// writeTables writes a file for each name of a table.
func writeTables(dir string, tables []*doc.Table) error {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // tables are for others to read too
		return err
	}
	seen := map[string]int{}
	for _, t := range tables {
		name := t.Name
		if seen[t.Name]++; seen[t.Name] > 1 {
			name = fmt.Sprintf("%s-%d", name, seen[t.Name])
		}
		if err := replaceFile(filepath.Join(dir, name+".csv"), t.WriteCSV); err != nil {
			return err
		}
	}
	return nil
}

// replaceFile writes a file beside its place and moves it there when it is whole.
func replaceFile(path string, write func(io.Writer) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	if err := errors.Join(write(f), f.Chmod(0o644), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// spare refuses to write over a run file.
func spare(out string, files []string) error {
	if out == "" {
		return nil
	}
	there, err := os.Stat(out)
	if err != nil {
		return initFile{path: out}.folder() // there is nothing to lose
	}
	if there.IsDir() {
		return usage("--html %s is a folder: name a file in it", out)
	}
	one := slices.ContainsFunc(files, func(f string) bool {
		info, err := os.Stat(f)
		return err == nil && os.SameFile(info, there)
	})
	if one || isDatabase(out) {
		return usage("--html %s is a run file: name another for the page", out)
	}
	return nil
}

// isDatabase says whether a file is one of SQLite's, as run files are.
func isDatabase(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }() // it was only read
	mark := []byte("SQLite format 3\x00")
	head := make([]byte, len(mark))
	_, err = io.ReadFull(f, head)
	return err == nil && bytes.Equal(head, mark)
}
