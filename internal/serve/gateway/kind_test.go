package gateway

import (
	"strings"
	"testing"

	"parley/world"
)

// TestKind checks that a record can be read as episodes of a kind but not played.
func TestKind(t *testing.T) {
	t.Parallel()
	k := Kind()
	if w, err := k.World(k.Defaults(), nil); err == nil || w != nil || !strings.Contains(err.Error(), "not a plan that can be played") {
		t.Errorf("%v, %v", w, err)
	}
	record, ok := world.As[world.Recorded](k)
	if !ok || !record.Hidden(world.Note{Kind: wireKind}) || record.Hidden(world.Note{Kind: sessionNote}) {
		t.Errorf("the bytes that were sent are shown, or what was noted is not: %v", ok)
	}
}
