package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"parley/internal/files"
)

// output is a file to be written where the user says. What is there already is written over
// only if it is recognised as an earlier output of the same sort, or with --force; what is
// read, and any run file, never is. It is written beside its place and moved there when it is
// whole.
type output struct {
	// flag names it, as --html.
	flag string
	path string
	// force writes over what is there.
	force bool
	// inputs are the run files that are read.
	inputs []string
	// ours says whether what is there is an earlier output of the same sort, from its first
	// bytes. Default: nothing is.
	ours func(head []byte) bool
	// inside means that the user named the folder and not the file: a link is then replaced and
	// not followed.
	inside bool
}

// headSize is how much of a file is looked at to see what it is.
const headSize = 16 << 10

// check says whether the file may be written, and whether something is there.
func (o output) check() (there bool, err error) {
	look := os.Stat
	if o.inside {
		look = os.Lstat
	}
	info, err := look(o.path)
	_, linkErr := os.Lstat(o.path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && linkErr == nil:
		return false, usage("%s: %s is a link to nothing: name another file", o.flag, o.path)
	case errors.Is(err, fs.ErrNotExist):
		return false, initFile{path: o.path}.folder()
	case err != nil:
		return false, usage("%s: %w", o.flag, err)
	case info.IsDir():
		return false, usage("%s: %s is a folder: name a file in it", o.flag, o.path)
	case o.inside && info.Mode()&fs.ModeSymlink != 0 && o.force:
		return true, nil // the link is replaced, whatever it points to
	case !info.Mode().IsRegular():
		return false, usage("%s: %s is there and is no plain file: name another", o.flag, o.path)
	}
	head, err := headOf(o.path)
	switch {
	case err != nil:
		return false, usage("%s: %w", o.flag, err)
	case o.reads(info) || bytes.HasPrefix(head, []byte("SQLite format 3\x00")):
		return false, usage("%s: %s is part of a run file: name another", o.flag, o.path)
	case o.force || o.ours != nil && o.ours(head):
		return true, nil
	}
	return false, usage("%s: %s is there already: name another, or write over it with --force", o.flag, o.path)
}

// reads says whether a file is one of those that are read.
func (o output) reads(info fs.FileInfo) bool {
	for _, in := range o.inputs {
		for _, part := range []string{"", "-wal", "-shm", "-lock"} {
			if own, err := os.Stat(in + part); err == nil && os.SameFile(own, info) {
				return true
			}
		}
	}
	return false
}

// headOf returns the first bytes of a file.
func headOf(path string) ([]byte, error) {
	f, err := files.Open(path)
	if err != nil {
		return nil, err
	}
	head, err := io.ReadAll(io.LimitReader(f, headSize))
	return head, errors.Join(err, f.Close())
}

// write writes the file whole or not at all, also where write panics.
func (o output) write(write func(io.Writer) error) error {
	p, err := o.create()
	if err != nil {
		return err
	}
	written := false
	defer func() {
		if !written {
			p.abandon()
		}
	}()
	if err := write(p.File); err != nil {
		return err
	}
	written = true
	return p.commit()
}

// pendingOutput is an output that is not in its place yet.
type pendingOutput struct {
	*os.File
	output
	target string
}

// create begins the file beside its place. A link that the user named is followed.
func (o output) create() (*pendingOutput, error) {
	target := o.path
	if at, err := filepath.EvalSymlinks(o.path); err == nil && !o.inside {
		target = at
	}
	f, err := os.CreateTemp(filepath.Dir(target), ".parley-output-*")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.flag, err)
	}
	return &pendingOutput{File: f, output: o, target: target}, nil
}

// abandon leaves nothing behind.
func (p *pendingOutput) abandon() {
	_ = p.Close()
	_ = os.Remove(p.Name()) // nothing more can be done about it
}

// commit puts the file in its place, after another look at what is there now.
func (p *pendingOutput) commit() error {
	there, err := p.check()
	if err != nil {
		p.abandon()
		return err
	}
	mode := fs.FileMode(0o644)
	if info, err := os.Lstat(p.target); err == nil && info.Mode().IsRegular() {
		mode = info.Mode().Perm()
	}
	err = p.Chmod(mode)
	if !p.inside { // a folder may get thousands, and can be written again
		err = errors.Join(err, p.Sync())
	}
	if err := errors.Join(err, p.Close()); err != nil {
		p.abandon()
		return fmt.Errorf("%s: %w", p.flag, err)
	}
	if !there {
		// A second name is refused where something has come up since: renaming would not be.
		err := os.Link(p.Name(), p.target)
		switch {
		case errors.Is(err, fs.ErrExist):
			p.abandon()
			return usage("%s: %s has come up meanwhile: name another, or write over it with --force", p.flag, p.path)
		case err == nil:
			_ = os.Remove(p.Name()) // the file is in its place
			return nil
		}
		// Some file systems have no second names.
	}
	if err := os.Rename(p.Name(), p.target); err != nil {
		p.abandon()
		return fmt.Errorf("%s: %w", p.flag, err)
	}
	return nil
}

// isPage says whether a file begins as the pages do that report and compare write.
func isPage(head []byte) bool {
	return bytes.HasPrefix(head, []byte("<!DOCTYPE html>")) && bytes.Contains(head, []byte(`<meta name="generator" content="parley `))
}

// sameTable returns an ours for a CSV file: it has the same columns.
func sameTable(text []byte) func(head []byte) bool {
	columns, _, _ := bytes.Cut(text, []byte("\n"))
	return func(head []byte) bool {
		first, _, _ := bytes.Cut(head, []byte("\n"))
		return len(columns) > 0 && bytes.Equal(columns, first)
	}
}
