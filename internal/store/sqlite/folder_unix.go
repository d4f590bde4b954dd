//go:build unix

package sqlite

import (
	"errors"
	"os"
)

// syncFolder makes the name of a new file durable.
func syncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
