//go:build unix

package http1

import (
	"errors"
	"syscall"
)

// quiet reports whether the server has neither closed the connection nor sent anything since the last exchange.
func (k *conn) quiet() bool {
	if k.raw == nil {
		return true
	}
	quiet := false
	err := k.raw.Read(func(fd uintptr) bool {
		n, err := syscall.Read(int(fd), k.first[:])
		quiet = n <= 0 && (errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EINTR))
		return true // do not wait
	})
	return err == nil && quiet
}
