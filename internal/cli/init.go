package cli

import (
	"bytes"
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
	"syscall"

	"parley/internal/config"
	"parley/internal/files"
)

// initCmd writes a plan file to begin with.
type initCmd struct {
	Kind  string `arg:"" help:"The kind of world. parley worlds lists them." placeholder:"KIND"`
	Out   string `placeholder:"FILE" help:"The plan file to write. Default: KIND.yaml."`
	Force bool   `help:"Overwrite existing files. A file that you changed is first copied to NAME.bak."`
}

// Run writes the plan and, beside it, the JSON Schema that its first line names.
func (c *initCmd) Run(s *State) error {
	all := s.Kinds
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
	kept, err := writeFiles(files, c.Force)
	for _, k := range kept { // also where the rest could not be written
		fmt.Fprintf(s.Stderr, "parley: %s was not as init writes it: it is kept as %s\n", k[0], k[1])
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(s.Stdout, "wrote %s, and %s for editors that complete and check it\n%s\n"+
		"next:  parley check %s   what it will take; nothing is asked\n       parley run %s     play it\n", plan, beside, pathList(files[2:]), shellWord(plan), shellWord(plan))
	return err
}

// writeFiles writes the plan, its schema, and what the plan names, in folders of its own.
// All of them are looked at before anything is made. What is written over is kept: kept has
// its name and that of its copy.
func writeFiles(files []initFile, force bool) (kept [][2]string, err error) {
	var changed []string
	for i, f := range files {
		check := f.check
		if i > 1 {
			check = f.checkBelow
		}
		there, err := check()
		if err != nil {
			return nil, err
		}
		if there {
			changed = append(changed, f.path)
		}
	}
	if len(changed) > 0 && !force {
		return nil, wontWrite(changed)
	}
	for _, f := range files[2:] {
		if err := os.MkdirAll(filepath.Dir(f.path), 0o750); err != nil {
			return nil, usage("%w", err)
		}
	}
	for _, f := range files {
		if slices.Contains(changed, f.path) {
			name, err := backup(f.path)
			if err != nil {
				return kept, fmt.Errorf("init: %w", err)
			}
			kept = append(kept, [2]string{f.path, name})
		}
		if err := f.write(force); err != nil {
			return kept, fmt.Errorf("init: %w", err)
		}
	}
	return kept, nil
}

// wontWrite names the files that stand in the way.
func wontWrite(changed []string) error {
	const way = "name another with --out, or write over it with --force, which keeps a copy"
	if len(changed) == 1 {
		return usage("%s is there already, and is not as init writes it: %s", changed[0], way)
	}
	return usage("these are there already, and are not as init writes them:\n      %s\n%s", strings.Join(changed, "\n      "), way)
}

// backup copies a file beside itself, over nothing that is there, and returns the name.
func backup(path string) (string, error) {
	was, err := files.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = was.Close() }() // it was only read
	name := path + ".bak"
	for n := 2; ; n++ {
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if errors.Is(err, fs.ErrExist) {
			name = fmt.Sprintf("%s.bak%d", path, n)
			continue
		}
		if err != nil {
			return "", err
		}
		_, err = io.Copy(f, was)
		return name, errors.Join(err, f.Sync(), f.Close())
	}
}

// pathList names files, one a line.
func pathList(files []initFile) string {
	var b strings.Builder
	for _, f := range files {
		b.WriteString("      " + f.path + "\n")
	}
	return b.String()
}

// initFile is a file to be written.
type initFile struct {
	path string
	text []byte
}

// check says whether something else is there, and refuses where no file can be.
func (f initFile) check() (there bool, err error) {
	info, err := os.Stat(f.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, f.folder()
	case err != nil:
		return false, usage("%w", err)
	case !info.Mode().IsRegular():
		return false, usage("%s is there and is no plain file", f.path)
	}
	if info.Size() != int64(len(f.text)) {
		return true, nil
	}
	was, err := files.Read(context.Background(), f.path, info.Size())
	return err != nil || !bytes.Equal(was, f.text), nil
}

// checkBelow is check for a file whose folders may have to be made: what stands in their
// place must not be a file.
func (f initFile) checkBelow() (there bool, err error) {
	for dir := filepath.Dir(f.path); ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		switch {
		case (errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)) && dir != filepath.Dir(dir):
			continue
		case err != nil:
			return false, usage("%w", err)
		case !info.IsDir():
			return false, usage("%s is there and is no folder: name another place with --out", dir)
		case dir != filepath.Dir(f.path):
			return false, nil // it is made
		}
		return f.check()
	}
}

// folder makes sure that there is one to write to.
func (f initFile) folder() error {
	dir := filepath.Dir(f.path)
	switch info, err := os.Stat(dir); {
	case errors.Is(err, fs.ErrNotExist):
		return usage("%s: the folder %s does not exist: make it first, or name another file", f.path, dir)
	case err != nil:
		return usage("%w", err)
	case !info.IsDir():
		return usage("%s: %s is a file, not a folder: name another file", f.path, dir)
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
			if there, err := f.check(); err != nil || !there {
				return err // the same is there already
			}
			return wontWrite([]string{f.path})
		}
		if err != nil {
			return err
		}
		_, err = t.Write(f.text)
		return errors.Join(err, t.Close())
	}
	return files.Replace(f.path, 0o644, f.text)
}
