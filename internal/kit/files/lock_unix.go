//go:build unix

package files

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

const noFollow = unix.O_NOFOLLOW // a symbolic link is not opened

func tryLock(f *os.File) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	switch {
	case errors.Is(err, unix.EWOULDBLOCK):
		return ErrHeld
	case err != nil:
		return fmt.Errorf("%s: %w", f.Name(), err)
	}
	return nil
}

// identity returns an id that is the same for every name of a file on this machine, and how many names (hard links) the file
// has. It uses the file's name: opening and closing the file would release the POSIX locks of this
// process on it.
func identity(path string) (id string, links uint64, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", 0, err
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "", 0, fmt.Errorf("%s: the system does not say which file it is", path)
	}
	return fmt.Sprintf("%x-%x", s.Dev, s.Ino), uint64(s.Nlink), nil //nolint:unconvert // it is smaller on some systems
}
