package config

import (
	"path/filepath"

	"parley/internal/filelock"
)

// A recorded plan names its files relative to the folder of its run file, so that they are found from any current
// folder, and when the folder is moved with everything in it.

// ForFolder returns the plan for a run file in folder: JSON writes paths relative to that.
func (p *Plan) ForFolder(folder string) *Plan {
	same := *p
	same.folder = folder
	return &same
}

// FromFolder returns a plan that a run file in folder recorded, with paths that can be opened.
func (p *Plan) FromFolder(folder string) *Plan {
	same := p.ForFolder(folder)
	for _, name := range same.paths() {
		if *name = filepath.FromSlash(*name); *name != "" && !filepath.IsAbs(*name) {
			*name = filepath.Join(folder, *name)
		}
	}
	return same
}

// FolderOf returns the folder of the run file at path, which may be a link to it.
func FolderOf(file string) string {
	if target, err := filepath.EvalSymlinks(file); err == nil && filelock.Resolve(filepath.Dir(file)) != filepath.Dir(filelock.Resolve(target)) {
		return filepath.Dir(target)
	}
	return filepath.Dir(file)
}

// paths returns the names of the plan's files.
func (p *Plan) paths() []*string { return []*string{&p.Prices, &p.Cache, &p.Out} }

// recordedPath returns a path as it is recorded in a run file in folder: with slashes, and relative to folder. An absolute
// path that leads out of folder stays as it is, and so does every path if no folder is known.
func recordedPath(folder, path string) string {
	if path == "" || folder == "" {
		return path
	}
	whole := filepath.Join(filelock.Resolve(filepath.Dir(path)), filepath.Base(path))
	relative, err := filepath.Rel(filelock.Resolve(folder), whole)
	if err != nil {
		return whole // on another volume
	}
	if filepath.IsAbs(path) && !filepath.IsLocal(relative) {
		return path
	}
	return filepath.ToSlash(relative)
}
