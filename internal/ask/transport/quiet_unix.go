//go:build unix

package transport

import (
	"errors"
	"syscall"
	"time"
)

// quiet reports whether the server has neither closed the connection nor sent anything since the last exchange. What a TLS connection
// has read already, the system does not know.
func (k *conn) quiet() bool { return k.drained() && (k.below == k.Conn || k.silent(time.Unix(1, 0))) }

// drained reports whether the system has nothing more of the server, not even an end.
func (k *conn) drained() bool {
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
