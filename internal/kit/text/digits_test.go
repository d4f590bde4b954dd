package text

import (
	"math"
	"testing"
)

func TestRanges(t *testing.T) {
	t.Parallel()
	all := []int{1, 2, 5, 6, 7, 9, 11, 12, 13}
	for limit, want := range map[int]string{0: "1, 2, 5 to 7, 9, 11 to 13", 3: "1, 2, 5 to 7, and 4 more", 5: "1, 2, 5 to 7, 9, 11 to 13"} {
		if got := Ranges(all, limit); got != want {
			t.Errorf("%d: %s, want %s", limit, got, want)
		}
	}
	if got := Ranges(nil, 1); got != "" {
		t.Error(got)
	}
}

func TestGrouped(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", -999: "-999", -1000: "-1,000", 1234567: "1,234,567", math.MinInt64: "-9,223,372,036,854,775,808"} {
		if got := GroupDigits(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
