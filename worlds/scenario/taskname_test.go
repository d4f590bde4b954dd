package scenario

import (
	"path/filepath"
	"testing"

	"parley/internal/run/planfile"
	"parley/world"
)

// TestTaskName checks that a scenario is the same whatever a plan changes in it, and differs from another one.
func TestTaskName(t *testing.T) {
	t.Parallel()
	dir := folderOf(t, nil)
	of := func(sets ...string) string {
		p, err := planfile.Load(t.Context(), filepath.Join(dir, "plan.yaml"), []world.Kind{Kind()}, sets, planfile.Reach{})
		if err != nil {
			t.Fatal(err)
		}
		what, whole := Kind().TaskName(p.Params)
		if what == "" || whole {
			t.Errorf("%v: %q, %v", sets, what, whole)
		}
		return what
	}
	if as, set := of(), of("params.set={turns: 3}"); as != set {
		t.Errorf("%q and %q", as, set)
	}
	if as, other := of(), of("params.set={name: Another}"); as == other {
		t.Errorf("%q and %q", as, other)
	}
	if what, whole := (definition{}).TaskName(&Params{}); what != "" || whole {
		t.Errorf("nothing: %q", what)
	}
}
