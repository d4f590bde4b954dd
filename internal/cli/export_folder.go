package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"parley/internal/cli/exit"
	"parley/internal/cli/terminal"
	"parley/internal/read/export"
	"parley/internal/run/results"
	"parley/internal/run/runfile"
	"parley/journal"
	"parley/world"
	"parley/world/exhibit"
	"parley/world/part"
)

// formatFolder writes every episode as files for people to read.
const formatFolder = "folder"

// folders writes the files of a kind: each episode's into its own folder, and the tables that it makes of all episodes.
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
		w := &folderWriter{export: c, dir: c.Out, kind: kind, notify: s.tell}
		if err = w.all(ctx, store, run); err == nil {
			err = c.ownTables(ctx, s, store, kind)
		}
		problems = w.problems
		return fmt.Sprintf("%s of %s", terminal.Several(w.files, "file", "files"), terminal.Several(w.episodes, "episode", "episodes")), err
	})
	if err == nil && problems > 0 {
		return exit.Silent(exit.Failed)
	}
	return err
}

// ownTables writes the tables that the kind makes of the notes of all episodes.
func (c *exportCmd) ownTables(ctx context.Context, s *State, store *runfile.Store, kind world.Kind) error {
	for _, t := range export.TablesOf(kind) {
		to := exportFile{t, filepath.Join(c.Out, string(t)+"."+string(export.CSV))}
		if err := c.writeFile(ctx, s, []export.Run{c.run(ctx, s, store, nil)}, to, export.CSV); err != nil {
			return err
		}
	}
	return nil
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
	episodes, files int
	problems        int // episodes whose files are missing
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
		write := func(to io.Writer) error { _, err := io.WriteString(to, text); return err }
		if err := w.export.output(filepath.Join(dir, as)).Write(write); err != nil {
			return err
		}
		w.files++
	}
	return nil
}
