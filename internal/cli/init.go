package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"parley/internal/config"
	"parley/worlds"
)

// initCmd writes a plan file to begin with.
type initCmd struct {
	Kind  string `arg:"" help:"What to play: parley worlds lists the kinds." placeholder:"KIND"`
	Out   string `placeholder:"FILE" help:"The plan file to write. Default: KIND.yaml."`
	Force bool   `help:"Write over files that are there."`
}

// Run writes the plan and, beside it, the JSON Schema that its first line names.
func (c *initCmd) Run(s *State) error {
	all := worlds.Standard()
	kind, err := config.Kind(all, c.Kind)
	if err != nil {
		return asUsage(err)
	}
	schema, err := config.Schema(all)
	if err != nil {
		return err
	}
	plan := c.Out
	if plan == "" {
		plan = kind.Name + ".yaml"
	}
	beside := filepath.Join(filepath.Dir(plan), config.SchemaName)
	if filepath.Base(plan) == config.SchemaName {
		return usage("--out: %s is the name of the schema that is written beside the plan", config.SchemaName)
	}
	files := []initFile{{plan, config.Init(kind)}, {beside, schema}}
	for _, name := range slices.Sorted(maps.Keys(kind.ExampleFiles)) {
		path := filepath.Join(filepath.Dir(plan), filepath.FromSlash(name))
		files = append(files, initFile{path, []byte(kind.ExampleFiles[name])})
	}
	for i, f := range files {
		if i > 1 { // what the plan names: in folders of its own
			if err := os.MkdirAll(filepath.Dir(f.path), 0o755); err != nil {
				return usage("%w", err)
			}
		}
		if err := f.check(c.Force); err != nil {
			return err
		}
	}
	for _, f := range files {
		if err := f.write(c.Force); err != nil {
			return fmt.Errorf("init: %w", err)
		}
	}
	_, err = fmt.Fprintf(s.Stdout, "wrote %s, and %s for editors that complete and check it\n\n"+
		"next:  parley check %s   what it will take; nothing is asked\n       parley run %s     play it\n", plan, beside, shellWord(plan), shellWord(plan))
	return err
}

// initFile is a file to be written.
type initFile struct {
	path string
	text []byte
}

// check refuses to write over what is there, unless it is the same or forced to.
func (f initFile) check(force bool) error {
	info, err := os.Stat(f.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return f.folder()
	case err != nil:
		return usage("%w", err)
	case !info.Mode().IsRegular():
		return usage("%s is there and is no plain file", f.path)
	case force:
		return nil
	}
	if was, err := os.ReadFile(f.path); err == nil && bytes.Equal(was, f.text) {
		return nil
	}
	return usage("%s is there already: name another with --out, or write over it with --force", f.path)
}

// folder makes sure that there is one to write to.
func (f initFile) folder() error {
	dir := filepath.Dir(f.path)
	switch info, err := os.Stat(dir); {
	case errors.Is(err, fs.ErrNotExist):
		return usage("%s: the folder %s does not exist: make it first, or name another file with --out", f.path, dir)
	case err != nil:
		return usage("%w", err)
	case !info.IsDir():
		return usage("%s: %s is a file, not a folder: name another file with --out", f.path, dir)
	default:
		return nil
	}
}

// write writes a new file, never over one that came up since it was looked for; with
// force it puts the whole file in place in one step, so that a full disk costs nobody a
// plan.
func (f initFile) write(force bool) error {
	if !force {
		t, err := os.OpenFile(f.path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if errors.Is(err, fs.ErrExist) {
			return f.check(false) // the same is there already
		}
		if err != nil {
			return err
		}
		_, err = t.Write(f.text)
		return errors.Join(err, t.Close())
	}
	t, err := os.CreateTemp(filepath.Dir(f.path), ".parley-init-*")
	if err != nil {
		return err
	}
	_, err = t.Write(f.text)
	err = errors.Join(err, t.Chmod(0o644), t.Close())
	if err == nil {
		err = os.Rename(t.Name(), f.path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(t.Name()))
	}
	return nil
}
