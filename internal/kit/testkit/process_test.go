package testkit

import (
	"testing"
	"time"
)

// TestListenAgain: it waits until whoever has the address closes it.
func TestListenAgain(t *testing.T) {
	t.Parallel()
	other := StablePort(t)
	time.AfterFunc(50*time.Millisecond, func() { _ = other.Close() })
	l, err := ListenAgain(other.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
}
