package results

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestFind: equal keys get the place of the first of them, and others none.
func TestFind(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		keys := rapid.SliceOf(rapid.IntRange(0, 30)).Draw(rt, "keys")
		got := findCopies(rapid.IntRange(0, 40).Draw(rt, "expected"), slices.All(keys))
		all := true
		for i, k := range keys {
			want := 0
			if slices.Index(keys, k) != i || slices.Contains(keys[i+1:], k) {
				want, all = slices.Index(keys, k)+1, false
			}
			if got.At(i) != want {
				rt.Fatalf("key %d has place %d, want %d", i, got.At(i), want)
			}
		}
		if all != (got == nil) || got.At(len(keys)) != 0 {
			rt.Fatalf("%v for %v", got, keys)
		}
	})
}
