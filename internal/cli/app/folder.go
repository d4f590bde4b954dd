package app

import (
	"path/filepath"

	"parley/internal/kit/files"
	"parley/internal/run/planfile"
)

// A recorded plan names its files relative to the folder of its run file, so that they are found from any current
// folder, and when the folder is moved with everything in it.

// forFolder returns plan for a run file in folder.
func forFolder(plan *planfile.Plan, folder string) *planfile.Plan {
	same := *plan
	same.Folder = folder
	return &same
}

// fromFolder returns a plan that a run file in folder recorded, with paths that can be opened.
func fromFolder(plan *planfile.Plan, folder string) *planfile.Plan {
	same := forFolder(plan, folder)
	if real, err := filepath.EvalSymlinks(folder); err == nil {
		folder = real // a recorded path may begin with ..
	}
	for _, name := range []*string{&same.Prices, &same.Cache, &same.Out} {
		if *name = filepath.FromSlash(*name); *name != "" && !filepath.IsAbs(*name) {
			*name = filepath.Join(folder, *name)
		}
	}
	return same
}

// FolderOf returns the folder of the run file at path, which may be a link to it.
func FolderOf(file string) string {
	if target, err := filepath.EvalSymlinks(file); err == nil && files.Resolve(filepath.Dir(file)) != filepath.Dir(files.Resolve(target)) {
		return filepath.Dir(target)
	}
	return filepath.Dir(file)
}

// folder returns the folder that the paths of a recorded plan are relative to.
func (p Play) folder() string {
	if p.Folder != "" {
		return p.Folder
	}
	return FolderOf(p.File) // that of a journal without a file is the current one
}
