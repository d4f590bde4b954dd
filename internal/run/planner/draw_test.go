package planner

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// TestCountDeals: the compact list counts as a map does, whatever the order of the deals.
func TestCountDeals(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := map[int]int{}
		var list []dealRange
		for _, deal := range rapid.SliceOf(rapid.OneOf(rapid.IntRange(-3, 9), rapid.SampledFrom([]int{math.MinInt, math.MaxInt}))).Draw(t, "deals") {
			var before int
			list, before = count(list, deal)
			if before != want[deal] {
				t.Fatalf("deal %d was counted %d times before, got %d: %v", deal, want[deal], before, list)
			}
			want[deal]++
		}
	})
	var list []dealRange
	for i := range 8_000 { // groups of 8
		list, _ = count(list, i/8)
	}
	if len(list) != 1 || list[0] != (dealRange{0, 999, 8}) {
		t.Errorf("%d entries: %v", len(list), list[0])
	}
}
