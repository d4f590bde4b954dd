package cli

import (
	"runtime"
	"testing"
)

// TestCollectAt: a small heap may grow by the fixed headroom, a large one by little more than the percentage.
func TestCollectAt(t *testing.T) {
	t.Parallel()
	for inUse, want := range map[uint64]int{0: 1411, 4 << 20: 1411, 56 << 20: 111, 560 << 20: 21, 1 << 62: 11} {
		if got := collectAt(inUse); got != want {
			t.Errorf("%d bytes in use: %d%%, want %d%%", inUse, got, want)
		}
	}
}

// TestAfterEachCollection: it is called after a second collection too.
func TestAfterEachCollection(t *testing.T) {
	t.Parallel()
	called := make(chan struct{}, 1)
	afterEachCollection(func() {
		select {
		case called <- struct{}{}:
		default: // the test is over, and another one collects
		}
	})
	for range 3 {
		runtime.GC()
		<-called
	}
}
