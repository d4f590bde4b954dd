package llm

import (
	"math"
	"math/big"
	"testing"
)

// TestSaturate compares sums and products at the extremes with those of math/big.
func TestSaturate(t *testing.T) {
	t.Parallel()
	numbers := []int64{math.MinInt64, math.MinInt64 + 1, -5_000_000_000_000_000_000, -3, -1, 0, 1, 2, 3, 1 << 31, 1 << 32, 3_037_000_500, 5_000_000_000_000_000_000, math.MaxInt64 - 1, math.MaxInt64}
	bounded := func(n *big.Int) int64 {
		switch {
		case n.IsInt64():
			return n.Int64()
		case n.Sign() < 0:
			return math.MinInt64
		default:
			return math.MaxInt64
		}
	}
	for _, a := range numbers {
		for _, b := range numbers {
			x, y := big.NewInt(a), big.NewInt(b)
			if want, got := bounded(new(big.Int).Add(x, y)), Money(a).Plus(Money(b)); int64(got) != want {
				t.Errorf("%d + %d = %d, want %d", a, b, int64(got), want)
			}
			if want, got := bounded(new(big.Int).Sub(x, y)), Money(a).Minus(Money(b)); int64(got) != want {
				t.Errorf("%d - %d = %d, want %d", a, b, int64(got), want)
			}
			if int64(int(b)) != b || int64(int(a)) != a {
				continue // not a number of this machine
			}
			if want, got := bounded(new(big.Int).Mul(x, y)), Money(a).Times(int(b)); int64(got) != want {
				t.Errorf("%d * %d = %d, want %d", a, b, int64(got), want)
			}
			if math.MaxInt == math.MaxInt64 && (int64(AddTokens(int(a), int(b))) != bounded(new(big.Int).Add(x, y)) || int64(MulTokens(int(a), int(b))) != bounded(new(big.Int).Mul(x, y))) {
				t.Errorf("tokens: %d and %d make %d and %d", a, b, AddTokens(int(a), int(b)), MulTokens(int(a), int(b)))
			}
		}
	}
}

// TestUsageSumsNeverWrap adds usages that no int can hold the sum of.
func TestUsageSumsNeverWrap(t *testing.T) {
	t.Parallel()
	huge := Usage{Input: math.MaxInt, Cached: math.MaxInt, CacheWrite: math.MaxInt, CacheWriteLong: math.MaxInt, Output: math.MaxInt, Reasoning: math.MaxInt}
	if sum := huge.Plus(huge); sum != huge || sum.Total() != math.MaxInt {
		t.Errorf("%+v, total %d", sum, sum.Total())
	}
	if sum := (Usage{Input: 1, Output: 2}).Plus(Usage{Input: 3, Output: 4}); sum != (Usage{Input: 4, Output: 6}) || sum.Total() != 10 {
		t.Errorf("%+v", sum)
	}
}
