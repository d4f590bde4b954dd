package cli

import (
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"parley/internal/store/sqlite"
	"parley/internal/view"
	"parley/world"
)

// formatFolder writes every episode as files that people read.
const formatFolder = "folder"

// folders writes the files of a kind: those of an episode into a folder of its own, and
// the tables of all episodes once more as one.
func (c *exportCmd) folders(ctx context.Context, s *State) (err error) {
	switch {
	case c.Out == "":
		return usage("--format folder: name the folder to write to with --out")
	case c.Table != "calls":
		return usage("--format folder writes files to read, not a table: leave --table away")
	}
	store, _, err := openRun(ctx, c.File)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	ctx, end := interruptible(ctx, s)
	defer end()
	var w *folderWriter
	left := readRest(ctx, s, store, func() error {
		run, err := view.Fold(ctx, store, c.File)
		if err != nil {
			return err
		}
		kind := kindOf(run)
		if kind.Files == nil {
			return usage("--format folder: %s has no files to read: export a table, or see parley show", cmp.Or(kind.Name, run.Head.Begun.Kind+", as it was played,"))
		}
		if w == nil { // else it has our own files
			if err := c.emptyFolder(); err != nil {
				return err
			}
		}
		w = &folderWriter{dir: c.Out, kind: kind, tables: map[string]*joinedTable{}}
		return errors.Join(w.all(ctx, store, run), w.close())
	})
	if left != nil && store.Lost() == nil {
		return playError(c.File, left)
	}
	_, err = fmt.Fprintf(s.Stdout, "wrote %s: %s files of %s episodes%s\n", c.Out, number(w.files), number(w.episodes), w.joined())
	return cmp.Or(err, left)
}

// emptyFolder makes the folder of --out. One that holds anything is written into only if
// forced to.
func (c *exportCmd) emptyFolder() error {
	if err := os.Mkdir(c.Out, 0o750); err != nil && !errors.Is(err, fs.ErrExist) {
		return usage("--out: %w", err)
	}
	there, err := os.ReadDir(c.Out)
	switch {
	case err != nil:
		return usage("--out: %w", err)
	case len(there) > 0 && !c.Force:
		return usage("--out: %s is not empty: name another folder, or write over what is there with --force", c.Out)
	}
	return nil
}

// folderWriter writes the files of episodes.
type folderWriter struct {
	dir             string
	kind            world.Kind
	tables          map[string]*joinedTable
	episodes, files int
}

// joinedTable is a table of all episodes.
type joinedTable struct {
	file *os.File
	csv  *csv.Writer
	head []string
}

func (w *folderWriter) all(ctx context.Context, store *sqlite.Store, run *view.Run) (err error) {
	run.Each(func(p world.Played) {
		if err != nil {
			return
		}
		var t *view.Transcript
		if t, err = view.ReadTranscript(ctx, store, run, p.Episode); err == nil {
			err = w.episode(p, w.kind.Files(p, t.Notes))
		}
	})
	return err
}

func (w *folderWriter) episode(p world.Played, files map[string]string) error {
	if len(files) == 0 {
		return nil // there is nothing to read of it
	}
	dir := filepath.Join(w.dir, fmt.Sprintf("episode-%04d", p.Episode))
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	w.episodes++
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if name != filepath.Base(name) || !filepath.IsLocal(name) {
			continue // a run file may come from anywhere
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(files[name]), 0o644); err != nil {
			return fmt.Errorf("--out: %w", err)
		}
		w.files++
		if strings.HasSuffix(name, ".csv") {
			if err := w.join(p, name, files[name]); err != nil {
				return err
			}
		}
	}
	return nil
}

// join adds the rows of an episode's table to the table of all, with the episode and its
// cell in front.
func (w *folderWriter) join(p world.Played, name, text string) error {
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil || len(rows) == 0 {
		return err
	}
	t := w.tables[name]
	if t == nil {
		f, err := os.Create(filepath.Join(w.dir, name))
		if err != nil {
			return fmt.Errorf("--out: %w", err)
		}
		t = &joinedTable{file: f, csv: csv.NewWriter(f), head: rows[0]}
		w.tables[name] = t
		if err := t.csv.Write(append([]string{"episode", "deal", "cell"}, t.head...)); err != nil {
			return fmt.Errorf("--out: %w", err)
		}
	}
	if !slices.Equal(rows[0], t.head) {
		return nil // another table under the same name
	}
	for _, row := range rows[1:] {
		cell := p.Spec.Cell
		if cell != "" && strings.IndexByte("=+-@'\t\r\n", cell[0]) >= 0 {
			cell = "'" + cell // as in the tables of export: nothing is a formula
		}
		if err := t.csv.Write(append([]string{strconv.Itoa(p.Episode), strconv.Itoa(p.Spec.Deal), cell}, row...)); err != nil {
			return fmt.Errorf("--out: %w", err)
		}
	}
	return nil
}

// close ends the tables.
func (w *folderWriter) close() error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(w.tables)) {
		t := w.tables[name]
		t.csv.Flush()
		errs = append(errs, t.csv.Error(), t.file.Close())
	}
	return errors.Join(errs...)
}

func (w *folderWriter) joined() string {
	if len(w.tables) == 0 {
		return ""
	}
	return ", and " + strings.Join(slices.Sorted(maps.Keys(w.tables)), ", ") + " of all of them"
}
