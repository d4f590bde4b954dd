//go:build unix

package bulk

import (
	"errors"
	"os"
	"path/filepath"

	"parley/internal/files"
)

// replace replaces o's file with the file tmp while o still holds its lock, and syncs the folder.
func replace(o *outFile, tmp string) error {
	if err := os.Rename(tmp, o.path); err != nil {
		return err
	}
	return errors.Join(files.SyncFolder(filepath.Dir(o.path)), o.close())
}
