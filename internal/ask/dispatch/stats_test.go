package dispatch

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"parley/llm"
)

// TestMadeUpModels: names that clients make up are counted together once there are many, and long ones are cut.
func TestMadeUpModels(t *testing.T) {
	t.Parallel()
	s := newCounters()
	for i := range 3 * maxModels {
		s.call(&llm.Request{Model: fmt.Sprintf("lab/%d%s", i, strings.Repeat("x", 10_000))}, nil, fmt.Errorf("no"), time.Second)
	}
	got := s.Snapshot()
	if len(got.Models) != maxModels+1 || got.Models["other"].Calls != 2*maxModels || got.Calls != 3*maxModels {
		t.Errorf("%d models, %d calls of others, %d calls", len(got.Models), got.Models["other"].Calls, got.Calls)
	}
	for name := range got.Models {
		if len(name) > maxName {
			t.Fatalf("a name of %d bytes", len(name))
		}
	}
}
