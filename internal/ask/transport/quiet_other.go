//go:build !unix

package transport

import "time"

// quiet reports whether the server has neither closed the connection nor sent anything since the last exchange. Nothing can be read
// here without waiting, so it waits a moment.
func (k *conn) quiet() bool { return k.silent(time.Now().Add(time.Millisecond)) }
