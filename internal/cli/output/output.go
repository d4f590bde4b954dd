// Package output writes the files that a user asks for.
//
// A file is written in full or not at all. An existing file is overwritten only if the user says so, or if an
// earlier command of the same kind wrote it. A run file is never overwritten.
//
// It does not write run files: package runfile does.
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
	"parley/internal/kit/files"
)

// File is a file to write. An existing file is overwritten only with --force, or if it is an earlier output of
// the same kind. Inputs and run files are never overwritten. The data goes to a temporary file, which is renamed
// when it is complete.
type File struct {
	// Flag is the flag that names the file, such as --html.
	Flag string
	Path string
	// Force overwrites an existing file.
	Force bool
	// New means that the command has no --force: the file must not exist.
	New bool
	// Inputs are the run files that the command reads.
	Inputs []string
	// Ours reports whether an existing file is an earlier output of the same kind, judged by its first bytes.
	// Default: never.
	Ours func(head []byte) bool
	// Inside means that the user named the folder, not the file. A link is then replaced instead of followed.
	Inside bool
}

// headSize is how many bytes of an existing file are read to recognize it.
const headSize = 16 << 10

// Check checks that the file may be written. there reports whether it exists.
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
		return false, Template{Path: o.Path}.checkFolder()
	case err != nil:
		return false, exit.Usagef("%s: %w", o.Flag, err)
	case info.IsDir():
		return false, exit.Usagef("%s: %s is a folder: name a file in it", o.Flag, o.Path)
	case o.Inside && info.Mode()&fs.ModeSymlink != 0 && o.Force:
		return true, nil // the link is replaced, whatever its target
	case !info.Mode().IsRegular():
		return false, exit.Usagef("%s: %s exists and is not a regular file; name another", o.Flag, o.Path)
	}
	head, err := headOf(o.Path)
	switch {
	case err != nil:
		return false, exit.Usagef("%s: %w", o.Flag, err)
	case o.isInput(info) || bytes.HasPrefix(head, []byte("SQLite format 3\x00")):
		return false, exit.Usagef("%s: %s is part of a run file: name another", o.Flag, o.Path)
	case o.Force || o.Ours != nil && o.Ours(head):
		return true, nil
	}
	return false, o.refuse("already exists")
}

// refuse returns the error for a file that exists.
func (o File) refuse(why string) error {
	way := "name another file, or overwrite it with --force"
	if o.New {
		way = "name another file"
	}
	return exit.Usagef("%s: %s %s; %s", o.Flag, o.Path, why, way)
}

// isInput reports whether a file is one of the inputs.
func (o File) isInput(info fs.FileInfo) bool {
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

// Write writes the whole file or nothing, even if write panics.
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

// Pending is an output that is not complete yet.
type Pending struct {
	*os.File
	of     File
	target string
}

// Create creates the temporary file beside the final one. It follows a link that the user named.
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

// Abandon removes the temporary file.
func (p *Pending) Abandon() {
	_ = p.Close()
	_ = os.Remove(p.Name()) // an error here cannot be handled
}

// Commit renames the file, after it checks again that it may.
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
	if !p.of.Inside { // a folder may get thousands of files, and can be written again
		err = errors.Join(err, p.Sync())
	}
	if err := errors.Join(err, p.Close()); err != nil {
		p.Abandon()
		return fmt.Errorf("%s: %w", p.of.Flag, err)
	}
	if !there {
		// Link fails if the target has been created since the check. Rename would overwrite it.
		err := os.Link(p.Name(), p.target)
		switch {
		case errors.Is(err, fs.ErrExist):
			p.Abandon()
			return p.of.refuse("was created in the meantime")
		case err == nil:
			_ = os.Remove(p.Name()) // the target is a second link to it
			return nil
		}
		// Some file systems have no hard links.
	}
	if err := os.Rename(p.Name(), p.target); err != nil {
		p.Abandon()
		return fmt.Errorf("%s: %w", p.of.Flag, err)
	}
	return nil
}

// IsPage reports whether a file begins like a page of report or compare.
func IsPage(head []byte) bool {
	return bytes.HasPrefix(head, []byte("<!DOCTYPE html>")) && bytes.Contains(head, []byte(`<meta name="generator" content="parley `))
}

// SameTable returns an Ours for a CSV file: the columns must be the same.
func SameTable(text []byte) func(head []byte) bool {
	columns, _, _ := bytes.Cut(text, []byte("\n"))
	return func(head []byte) bool {
		first, _, _ := bytes.Cut(head, []byte("\n"))
		return len(columns) > 0 && bytes.Equal(columns, first)
	}
}
