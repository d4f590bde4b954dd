//go:build !race

// The race detector makes stacks larger.

package secrets

import (
	"fmt"
	"runtime"
	"testing"

	"parley/world"
)

// TestWaitingIsSmall: a conversation that waits for its third message takes no more than 4 KB of stack, so that very many can wait at
// once. The next size of a stack is 8 KB.
func TestWaitingIsSmall(t *testing.T) {
	const n = 1000
	stacks := func() uint64 {
		runtime.GC() // stacks of goroutines that have ended do not count
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.StackInuse
	}
	strands := make([]*world.Strand, n)
	before := stacks()
	for i := range strands {
		w, err := definition{}.World(definition{}.Defaults(), nil)
		if err != nil {
			t.Fatal(err)
		}
		strands[i] = world.Begin(w, world.Deal{Seed: 1, Number: i})
		defer strands[i].Stop()
		strands[i].Next(nil)
		for k := range 2 {
			strands[i].Next([]world.Reply{{Text: fmt.Sprintf("Hello, my friend. I will tell you mine for yours, and that is fair: %d.", k)}})
		}
	}
	if each := (stacks() - before) / n; each > 5<<10 {
		t.Errorf("%d bytes of stack for each conversation", each)
	}
}
