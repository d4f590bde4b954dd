package cli

import (
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"parley/internal/cli/exit"
	"parley/internal/cli/output"
	"parley/internal/cli/terminal"
	"parley/internal/run/results"
	"parley/internal/run/runfile"
	"parley/journal"
	"parley/world"
	"parley/world/exhibit"
	"parley/world/part"
)

// formatFolder writes every episode as files for people to read.
const formatFolder = "folder"

// folders writes the files of a kind: each episode's into its own folder, and the tables of all episodes
// combined.
func (c *exportCmd) folders(ctx context.Context, s *State) error {
	switch {
	case c.Out == "":
		return exit.Usagef("--format folder: name the folder to write to with --out")
	case c.Table != "calls":
		return exit.Usagef("--format folder writes files to read, not a table; leave out --table")
	}
	ready := func(begun *journal.Begun) error {
		kind := s.kindOf(begun)
		if _, ok := world.As[part.FileMaker](kind); !ok {
			return exit.Usagef("--format folder: %s has no files to read: export a table, or see parley show", cmp.Or(kind.Name, begun.Kind+", as it was played,"))
		}
		return c.emptyFolder()
	}
	problems := 0
	err := c.wholeRun(ctx, s, ready, func(ctx context.Context, store *runfile.Store, kind world.Kind) (string, error) {
		run, err := results.Fold(ctx, store, c.File)
		if err != nil {
			return "", err
		}
		run.Know(kind)
		run.Everything = true // an export has the data, and computes nothing
		w := &folderWriter{export: c, dir: c.Out, kind: kind, notify: s.tell, tables: map[string]*joinedTable{}}
		err = w.all(ctx, store, run)
		problems = w.problems
		return fmt.Sprintf("%s of %s%s", terminal.Several(w.files, "file", "files"), terminal.Several(w.episodes, "episode", "episodes"), w.joined()), errors.Join(err, w.close(err == nil))
	})
	if err == nil && problems > 0 {
		return exit.Silent(exit.Failed)
	}
	return err
}

// emptyFolder creates the folder of --out. A folder that is not empty needs --force.
func (c *exportCmd) emptyFolder() error {
	if err := os.Mkdir(c.Out, 0o750); err != nil && !errors.Is(err, fs.ErrExist) {
		return exit.Usagef("--out: %w", err)
	}
	there, err := os.ReadDir(c.Out)
	switch {
	case err != nil:
		return exit.Usagef("--out: %w", err)
	case len(there) > 0 && !c.Force:
		return exit.Usagef("--out: %s is not empty; name another folder, or overwrite its files with --force", c.Out)
	}
	return nil
}

// folderWriter writes the files of episodes.
type folderWriter struct {
	export          *exportCmd
	dir             string
	kind            world.Kind
	notify          func(text string) // prints to standard error
	tables          map[string]*joinedTable
	episodes, files int
	problems        int // files that are missing or not in the combined tables
}

// maxProblems is how many problems are reported one by one.
const maxProblems = 10

// problem reports something that is missing.
func (w *folderWriter) problem(err error) {
	switch w.problems++; {
	case w.problems < maxProblems:
		w.notify(err.Error())
	case w.problems == maxProblems:
		w.notify(err.Error() + "; problems like this that follow are not listed")
	}
}

// joinedTable is a table of all episodes.
type joinedTable struct {
	file *output.Pending
	csv  *csv.Writer
	head []string
}

func (w *folderWriter) all(ctx context.Context, store *runfile.Store, run *results.Run) error {
	return run.EachWithData(ctx, store, func(p world.Played) error {
		t, err := results.ReadTranscript(ctx, store, run.Head, run.Kind(), p.Episode)
		if err != nil {
			return err
		}
		files, failed := t.Files(w.kind.Of(p.Spec), run.Head.Begun.Plan, p)
		if failed != nil {
			w.problem(fmt.Errorf("episode %d has no files: %w", p.Episode, failed))
		}
		return w.episode(p, files)
	})
}

func (w *folderWriter) episode(p world.Played, files map[string]string) error {
	if len(files) == 0 {
		return nil // it has no files
	}
	dir := filepath.Join(w.dir, fmt.Sprintf("episode-%04d", p.Episode))
	if err := os.Mkdir(dir, 0o750); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("--out: %w", err)
	}
	if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
		return exit.Usagef("--out: %s exists and is not a folder; name another with --out", dir)
	}
	w.episodes++
	for _, name := range slices.Sorted(maps.Keys(files)) {
		text, as := files[name], exhibit.FileName(name) // a run file may be hostile
		if strings.HasSuffix(as, ".md") {
			text = exhibit.Visible(text)
		}
		var rows [][]string
		if strings.HasSuffix(as, ".csv") {
			var err error
			if text, rows, err = readTable(text); err != nil {
				w.problem(fmt.Errorf("the kind %s: the file %s of episode %d is no table: %w: it is written as it is, and left out of the table of all episodes", w.kind.Name, as, p.Episode, err))
			}
		}
		write := func(to io.Writer) error { _, err := io.WriteString(to, text); return err }
		if err := w.export.output(filepath.Join(dir, as)).Write(write); err != nil {
			return err
		}
		w.files++
		if len(rows) > 0 {
			if err := w.join(p, as, rows); err != nil {
				return err
			}
		}
	}
	return nil
}

// readTable parses a table of a kind. It guards the cells that a spreadsheet would run as a formula, as the
// tables of export do. Numbers stay unchanged, since all cells are texts here.
func readTable(text string) (guarded string, rows [][]string, err error) {
	if rows, err = csv.NewReader(strings.NewReader(text)).ReadAll(); err != nil {
		return text, nil, err
	}
	changed := false
	for _, row := range rows {
		for i, cell := range row {
			if row[i] = guardCell(cell); row[i] != cell {
				changed = true
			}
		}
	}
	if changed {
		var b strings.Builder
		err = csv.NewWriter(&b).WriteAll(rows)
		text = b.String()
	}
	return text, rows, err
}

// guardCell puts a ' before a text that a spreadsheet would run as a formula.
func guardCell(cell string) string {
	if _, err := strconv.ParseFloat(cell, 64); err != nil && exhibit.Formula(cell) {
		return "'" + cell
	}
	return cell
}

// join appends the rows of an episode's table to the combined table, with columns for the episode and its cell.
func (w *folderWriter) join(p world.Played, name string, rows [][]string) error {
	t := w.tables[name]
	if t == nil {
		f, err := w.export.output(filepath.Join(w.dir, name)).Create()
		if err != nil {
			return err
		}
		t = &joinedTable{file: f, csv: csv.NewWriter(f), head: rows[0]}
		w.tables[name] = t
		if err := t.csv.Write(append([]string{"episode", "deal", "cell"}, t.head...)); err != nil {
			return fmt.Errorf("--out: %w", err)
		}
	}
	if !slices.Equal(rows[0], t.head) {
		return nil // a different table with the same name
	}
	for _, row := range rows[1:] {
		if err := t.csv.Write(append([]string{strconv.Itoa(p.Episode), strconv.Itoa(p.Spec.Deal), guardCell(p.Spec.Cell)}, row...)); err != nil {
			return fmt.Errorf("--out: %w", err)
		}
	}
	return nil
}

// close closes the tables. It keeps them only if they are complete.
func (w *folderWriter) close(whole bool) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(w.tables)) {
		t := w.tables[name]
		t.csv.Flush()
		if err := t.csv.Error(); err != nil || !whole {
			t.file.Abandon()
			errs = append(errs, err)
			continue
		}
		errs = append(errs, t.file.Commit())
	}
	return errors.Join(errs...)
}

func (w *folderWriter) joined() string {
	if len(w.tables) == 0 {
		return ""
	}
	return ", and " + strings.Join(slices.Sorted(maps.Keys(w.tables)), ", ") + " of all of them"
}
