// Package output writes the files that a user asks for.
//
// A file is written in full or not at all. An existing file is overwritten only if the user says so,
// or if an earlier command of the same kind wrote it. A run file is never overwritten.
//
// It is not for run files: package sqlite writes these.
package output

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"parley/internal/cli/exit"
	"parley/internal/files"
)

// File is a file to be written where the user says. What is there already is written over
// only if it is recognised as an earlier output of the same sort, or with --force; what is
// read, and any run file, never is. It is written beside its place and moved there when it is
// whole.
type File struct {
	// Flag names it, as --html.
	Flag string
	Path string
	// Force writes over what is there.
	Force bool
	// Inputs are the run files that are read.
	Inputs []string
	// Ours says whether what is there is an earlier output of the same sort, from its first
	// bytes. Default: nothing is.
	Ours func(head []byte) bool
	// Inside means that the user named the folder and not the file: a link is then replaced and
	// not followed.
	Inside bool
}

// headSize is how much of a file is looked at to see what it is.
const headSize = 16 << 10

// Check says whether the file may be written, and whether something is there.
func (o File) Check() (there bool, err error) {
	look := os.Stat
	if o.Inside {
		look = os.Lstat
	}
	info, err := look(o.Path)
	_, linkErr := os.Lstat(o.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && linkErr == nil:
		return false, exit.Usagef("%s: %s is a link to nothing: name another file", o.Flag, o.Path)
	case errors.Is(err, fs.ErrNotExist):
		return false, Template{Path: o.Path}.folder()
	case err != nil:
		return false, exit.Usagef("%s: %w", o.Flag, err)
	case info.IsDir():
		return false, exit.Usagef("%s: %s is a folder: name a file in it", o.Flag, o.Path)
	case o.Inside && info.Mode()&fs.ModeSymlink != 0 && o.Force:
		return true, nil // the link is replaced, whatever it points to
	case !info.Mode().IsRegular():
		return false, exit.Usagef("%s: %s is there and is no plain file: name another", o.Flag, o.Path)
	}
	head, err := headOf(o.Path)
	switch {
	case err != nil:
		return false, exit.Usagef("%s: %w", o.Flag, err)
	case o.reads(info) || bytes.HasPrefix(head, []byte("SQLite format 3\x00")):
		return false, exit.Usagef("%s: %s is part of a run file: name another", o.Flag, o.Path)
	case o.Force || o.Ours != nil && o.Ours(head):
		return true, nil
	}
	return false, exit.Usagef("%s: %s is there already: name another, or write over it with --force", o.Flag, o.Path)
}

// reads says whether a file is one of those that are read.
func (o File) reads(info fs.FileInfo) bool {
	for _, in := range o.Inputs {
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

// Write writes the file whole or not at all, also where write panics.
func (o File) Write(write func(io.Writer) error) error {
	p, err := o.Create()
	if err != nil {
		return err
	}
	written := false
	defer func() {
		if !written {
			p.Abandon()
		}
	}()
	if err := write(p.File); err != nil {
		return err
	}
	written = true
	return p.Commit()
}

// Pending is an output that is not in its place yet.
type Pending struct {
	*os.File
	of     File
	target string
}

// Create begins the file beside its place. A link that the user named is followed.
func (o File) Create() (*Pending, error) {
	target := o.Path
	if at, err := filepath.EvalSymlinks(o.Path); err == nil && !o.Inside {
		target = at
	}
	f, err := os.CreateTemp(filepath.Dir(target), ".parley-output-*")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.Flag, err)
	}
	return &Pending{File: f, of: o, target: target}, nil
}

// Abandon leaves nothing behind.
func (p *Pending) Abandon() {
	_ = p.Close()
	_ = os.Remove(p.Name()) // nothing more can be done about it
}

// Commit puts the file in its place, after another look at what is there now.
func (p *Pending) Commit() error {
	there, err := p.of.Check()
	if err != nil {
		p.Abandon()
		return err
	}
	mode := fs.FileMode(0o644)
	if info, err := os.Lstat(p.target); err == nil && info.Mode().IsRegular() {
		mode = info.Mode().Perm()
	}
	err = p.Chmod(mode)
	if !p.of.Inside { // a folder may get thousands, and can be written again
		err = errors.Join(err, p.Sync())
	}
	if err := errors.Join(err, p.Close()); err != nil {
		p.Abandon()
		return fmt.Errorf("%s: %w", p.of.Flag, err)
	}
	if !there {
		// A second name is refused where something has come up since: renaming would not be.
		err := os.Link(p.Name(), p.target)
		switch {
		case errors.Is(err, fs.ErrExist):
			p.Abandon()
			return exit.Usagef("%s: %s has come up meanwhile: name another, or write over it with --force", p.of.Flag, p.of.Path)
		case err == nil:
			_ = os.Remove(p.Name()) // the file is in its place
			return nil
		}
		// Some file systems have no second names.
	}
	if err := os.Rename(p.Name(), p.target); err != nil {
		p.Abandon()
		return fmt.Errorf("%s: %w", p.of.Flag, err)
	}
	return nil
}

// IsPage says whether a file begins as the pages do that report and compare write.
func IsPage(head []byte) bool {
	return bytes.HasPrefix(head, []byte("<!DOCTYPE html>")) && bytes.Contains(head, []byte(`<meta name="generator" content="parley `))
}

// SameTable returns an ours for a CSV file: it has the same columns.
func SameTable(text []byte) func(head []byte) bool {
	columns, _, _ := bytes.Cut(text, []byte("\n"))
	return func(head []byte) bool {
		first, _, _ := bytes.Cut(head, []byte("\n"))
		return len(columns) > 0 && bytes.Equal(columns, first)
	}
}
