//go:build unix

package bulk

import (
	"errors"
	"os"
	"path/filepath"

	"parley/internal/files"
)

// replace puts the file tmp in the place of o's while o still holds its lock, and
// makes the change of name durable.
func replace(o *outFile, tmp string) error {
	if err := os.Rename(tmp, o.path); err != nil {
		return err
	}
	return errors.Join(files.SyncFolder(filepath.Dir(o.path)), o.close())
}
