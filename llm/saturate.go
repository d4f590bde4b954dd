package llm

import "math"

// AddTokens returns a + b. A sum out of the range of int becomes the nearest int.
func AddTokens(a, b int) int {
	return int(max(math.MinInt, min(math.MaxInt, plus(int64(a), int64(b)))))
}

// MulTokens returns a * b, limited like AddTokens.
func MulTokens(a, b int) int {
	return int(max(math.MinInt, min(math.MaxInt, times(int64(a), int64(b)))))
}

// LargerTokens returns the larger of a and b, or the smaller one if it is negative and so not a count.
func LargerTokens(a, b int) int {
	if min(a, b) < 0 {
		return min(a, b)
	}
	return max(a, b)
}

// plus returns a + b, limited to the range of int64.
func plus(a, b int64) int64 {
	sum := a + b
	switch {
	case a > 0 && b > 0 && sum <= 0:
		return math.MaxInt64
	case a < 0 && b < 0 && sum >= 0:
		return math.MinInt64
	}
	return sum
}

// times returns a * b, limited to the range of int64.
func times(a, b int64) int64 {
	if a == 0 || b == 0 {
		return 0
	}
	product := a * b
	if product/b == a && !(a == math.MinInt64 && b == -1) && !(b == math.MinInt64 && a == -1) {
		return product
	}
	if (a < 0) != (b < 0) {
		return math.MinInt64
	}
	return math.MaxInt64
}
