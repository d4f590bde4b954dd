package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"parley/internal/cli/exit"
	"parley/internal/cli/output"
	"parley/internal/cli/terminal"
	"parley/internal/kit/statmath"
	"parley/internal/read/report"
	"parley/internal/run/merge"
)

// reportCmd summarizes runs.
type reportCmd struct {
	Files       []string `arg:"" placeholder:"FILE" help:"Run files. Parts of the same experiment are read as one run. Runs may still be in progress."`
	Separate    bool     `help:"Show runs side by side, even if they are parts of the same experiment."`
	Episodes    int      `default:"500" placeholder:"N" help:"Maximum number of episodes to list on the page. Default: ${default}."`
	By          []string `placeholder:"FACTOR" help:"Also group scores by this factor, and show its effect: a tag, a param, file, agent, model, seat, lineup, cell or variation. Give several, separated by commas, for interactions."`
	CountAll    bool     `help:"Count every episode that ended, also if the run is not complete. Short episodes end first, so the numbers are biased."`
	Transcripts int      `default:"20" placeholder:"N" help:"Maximum number of transcripts on the page. Default: ${default}."`
	tableFlags
}

// tableFlags choose the output formats of tables.
type tableFlags struct {
	CSV   string `name:"csv" placeholder:"DIR" help:"Write every table as a CSV file into this folder."`
	JSON  bool   `name:"json" help:"Print every table as JSON."`
	HTML  string `name:"html" placeholder:"OUT" help:"Write a self-contained HTML page."`
	Force bool   `help:"Overwrite existing files, also files of other programs."`
}

// reportMemory is the memory that a reader of runs may use before the garbage collector works harder: a run may have a
// million calls.
const reportMemory = 300 << 20

// Run prints the report.
func (c *reportCmd) Run(ctx context.Context, s *State) (err error) {
	if c.Episodes < 0 || c.Transcripts < 0 {
		return exit.Usagef("--episodes and --transcripts must not be negative")
	}
	if err := c.check(c.Files); err != nil {
		return err
	}
	ctx, end := untilSignal(ctx, s)
	defer end()
	defer limitMemory(s, reportMemory)()
	var d *report.Document
	stores, err := readRuns(ctx, s, c.Files, func(runs []report.Source) (err error) {
		if len(runs) > 1 && !c.Separate && !slices.Contains(c.By, report.ByFile) {
			if runs, err = c.merged(ctx, s, runs); err != nil {
				return err
			}
		}
		countAll(runs, c.CountAll)
		d, err = report.Build(ctx, runs, report.Options{Tool: Version(), Episodes: c.Episodes, Transcripts: c.Transcripts, By: c.By})
		return factorError(err)
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stores.close()) }()
	if err := c.show(s, d, c.Files); err != nil {
		return err
	}
	return reportLosses(s, stores...)
}

// countAll sets whether all episodes count that ended.
func countAll(runs []report.Source, all bool) {
	for _, r := range runs {
		r.Run.Everything = all
	}
}

// merged reads runs as one if they are parts of one experiment. Otherwise it says why they are shown side by
// side.
func (c *reportCmd) merged(ctx context.Context, s *State, runs []report.Source) ([]report.Source, error) {
	one, err := oneRun(ctx, runs)
	if conflict, ok := errors.AsType[*merge.ConflictError](err); ok {
		fmt.Fprintf(s.Stderr, "parley: the runs are shown side by side: %s\n", terminal.Safe(conflict.What))
		return runs, nil
	}
	return []report.Source{one}, err
}

// page is the file of --html. It overwrites pages that report or compare wrote.
func (f *tableFlags) page(files []string) output.File {
	return output.File{Flag: "--html", Path: f.HTML, Force: f.Force, Inputs: files, Ours: output.IsPage}
}

// check checks that the page may be written, before anything is read.
func (f *tableFlags) check(files []string) error {
	if f.HTML == "" {
		return nil
	}
	_, err := f.page(files).Check()
	return err
}

// show writes a document in the formats that the flags ask for: its tables as JSON, as CSV files, and the whole document as a page. Without
// flags, its tables are printed.
func (f *tableFlags) show(s *State, d *report.Document, files []string) error {
	if f.CSV != "" {
		if err := f.writeTables(d.Tables(), files); err != nil {
			return err
		}
		fmt.Fprintf(s.Stderr, "parley: the tables are in %s\n", f.CSV)
	}
	switch {
	case f.JSON:
		if err := terminal.PrintJSON(s.Stdout, d); err != nil {
			return err
		}
	case f.CSV == "" && f.HTML == "":
		p := terminal.NewPage(s.Stdout)
		printDocument(p, d)
		if err := p.Flush(); err != nil {
			return err
		}
	}
	if f.HTML == "" {
		return nil
	}
	if err := f.page(files).Write(d.WriteHTML); err != nil {
		return err
	}
	fmt.Fprintf(s.Stderr, "parley: the page is %s\n", f.HTML)
	return nil
}

// writeTables writes one file for each table name, or no file if one of them may not be written. It overwrites
// tables with the same columns.
func (f *tableFlags) writeTables(tables []*report.Table, files []string) error {
	if err := os.MkdirAll(f.CSV, 0o755); err != nil { //nolint:gosec // tables are for others to read too
		return exit.Usagef("--csv: %w", err)
	}
	seen := map[string]int{}
	var outs []output.File
	var texts []*bytes.Buffer
	for _, t := range tables {
		name := t.Name
		if seen[t.Name]++; seen[t.Name] > 1 {
			name = fmt.Sprintf("%s-%d", name, seen[t.Name])
		}
		text := &bytes.Buffer{}
		if err := t.WriteCSV(text); err != nil {
			return fmt.Errorf("--csv: %w", err)
		}
		out := output.File{Flag: "--csv", Path: filepath.Join(f.CSV, name+".csv"), Force: f.Force, Inputs: files, Ours: output.SameTable(text.Bytes()), Inside: true}
		if _, err := out.Check(); err != nil {
			return err
		}
		outs, texts = append(outs, out), append(texts, text)
	}
	for i, out := range outs {
		if err := out.Write(func(w io.Writer) error { _, err := w.Write(texts[i].Bytes()); return err }); err != nil {
			return err
		}
	}
	return nil
}

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
			b.Note("(shown on the page only, with --html: " + strings.Join(left, "; ") + "; --json and --csv have the numbers)")
		}
		if b.Empty() && len(s.Blocks) > 0 {
			continue // for the page only
		}
		if !p.Empty() {
			p.Line()
		}
		p.InkedLine(terminal.InkHead, s.Title)
		if b.Empty() {
			p.Text(s.Text)
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
			p.InkedLine(terminal.InkFaint, b.Title)
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
		p.InkedLine(terminal.InkFaint, b.Title)
	}
	for _, l := range lines {
		p.Item(l)
	}
	return true
}

// printTable adds a table of a report. If it is too wide for the terminal, the last columns that are no names are left out, and then the
// intervals.
func printTable(p *terminal.Page, t *report.Table) {
	t = t.Trimmed()
	rows := reportRows(t, false)
	if width := p.Width(); t.Sketch && (width == 0 || tableWidth(rows)+sketchWidth+2 <= width) {
		rows = sketched(t, rows)
	}
	if width := p.Width(); width > 0 && tableWidth(rows) > width {
		var left []string
		for i := len(t.Columns) - 1; i >= 0 && tableWidth(rows) > width; i-- {
			if c := t.Columns[i]; !c.Key && !hasQuantities(t, i) {
				left = append(left, c.Name)
				for n := range rows {
					rows[n] = slices.Delete(rows[n], i, i+1)
				}
			}
		}
		if short := reportRows(t, true); tableWidth(rows) > width && tableWidth(short) < tableWidth(reportRows(t, false)) {
			rows, left = short, []string{"intervals"}
		}
		if slices.Reverse(left); len(left) > 0 {
			defer p.Note("(left out: " + strings.Join(left, ", ") + "; a wider terminal or --json has them)")
		}
	}
	p.Table(rows)
	if t.Rest != "" {
		p.InkedLine(terminal.InkFaint, t.Rest)
	}
}

// hasQuantities reports whether a column has numbers with intervals.
func hasQuantities(t *report.Table, column int) bool {
	return slices.ContainsFunc(t.Rows, func(r []report.Cell) bool { _, ok := r[column].Value.(statmath.Quantity); return ok })
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
				text, _ = report.ValueAndInterval(q)
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
