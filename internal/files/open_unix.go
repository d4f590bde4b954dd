//go:build unix

package files

import "golang.org/x/sys/unix"

// withoutWaiting makes opening a pipe return at once. It changes nothing for regular files.
const withoutWaiting = unix.O_NONBLOCK
