package planfile

import (
	"path/filepath"

	"parley/internal/kit/files"
)

// reachRecorded returns a path as it is recorded in a run file in folder: with slashes, and relative to folder. An absolute
// path that leads out of folder stays as it is, and so does every path if no folder is known.
func reachRecorded(folder, path string) string {
	if path == "" || folder == "" {
		return path
	}
	whole := filepath.Join(files.Resolve(filepath.Dir(path)), filepath.Base(path))
	relative, err := filepath.Rel(files.Resolve(folder), whole)
	if err != nil {
		return whole // on another volume
	}
	if filepath.IsAbs(path) && !filepath.IsLocal(relative) {
		return path
	}
	return filepath.ToSlash(relative)
}
