//go:build unix

package files

import (
	"errors"
	"os"
)

// SyncFolder makes the names of files in a folder durable.
func SyncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
