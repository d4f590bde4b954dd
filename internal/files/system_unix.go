//go:build unix

package files

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// withoutWaiting makes opening a pipe return at once. It does not affect regular files.
const withoutWaiting = unix.O_NONBLOCK

// SyncFolder makes the names of files in a folder durable.
func SyncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
