//go:build unix

package files

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// withoutWaiting makes opening a pipe return at once. It does not affect regular files.
const withoutWaiting = unix.O_NONBLOCK

// Private reports whether a file is a regular file of this user that nobody else can read or write.
func Private(info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.Mode().IsRegular() && info.Mode().Perm()&0o077 == 0 && int64(s.Uid) == int64(os.Geteuid())
}

// SyncFolder makes the names of files in a folder durable.
func SyncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
