package clustertest

import (
	"net"
	"sync"
	"testing"
)

// Cable is a connection between a worker and a hub that can be cut.
type Cable struct {
	net.Listener
	Cut sync.RWMutex // held to write while it is cut
}

// NewCable returns a cable to an address.
func NewCable(t *testing.T, to string) *Cable {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &Cable{Listener: l}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			other, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", to)
			if err != nil {
				_ = from.Close()
				continue
			}
			wg.Go(func() { c.copy(from, other) })
			wg.Go(func() { c.copy(other, from) })
		}
	})
	t.Cleanup(func() { _ = l.Close(); wg.Wait() })
	return c
}

func (c *Cable) copy(to, from net.Conn) {
	defer func() { _, _ = to.Close(), from.Close() }()
	b := make([]byte, 1<<16)
	for {
		n, err := from.Read(b)
		if err != nil {
			return
		}
		c.Cut.RLock()
		_, err = to.Write(b[:n])
		c.Cut.RUnlock()
		if err != nil {
			return
		}
	}
}
