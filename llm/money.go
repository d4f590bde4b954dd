package llm

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// Money is an amount of US dollars in whole billionths, so that sums are exact in any order. One token at $0.05 per
// million is 50.
type Money int64

// Dollar is one dollar.
const Dollar Money = 1_000_000_000

// Dollars returns the amount nearest to d dollars. An amount beyond the range of Money, some nine billion dollars, is cut
// to the range. NaN is 0.
func Dollars(d float64) Money {
	switch n := math.Round(d * float64(Dollar)); {
	case n != n:
		return 0
	case n >= math.MaxInt64:
		return math.MaxInt64
	case n <= math.MinInt64:
		return math.MinInt64
	default:
		return Money(n)
	}
}

// Plus returns m + n. A sum out of range becomes the largest or smallest Money: an amount never wraps around. Use Plus,
// Minus and Times for all amounts from outside.
func (m Money) Plus(n Money) Money { return Money(plus(int64(m), int64(n))) }

// Minus returns m - n, limited like Plus.
func (m Money) Minus(n Money) Money {
	if n == math.MinInt64 {
		return m.Plus(math.MaxInt64).Plus(1)
	}
	return m.Plus(-n)
}

// Times returns m * n, limited like Plus.
func (m Money) Times(n int) Money { return Money(times(int64(m), int64(n))) }

// Dollars returns m as a number of dollars.
func (m Money) Dollars() float64 { return float64(m) / float64(Dollar) }

// String writes m in dollars, with two to six decimals.
func (m Money) String() string {
	sign, n := m.split()
	n = (n + 500) / 1000
	s := fmt.Sprintf("%s$%d.%06d", sign, n/1_000_000, n%1_000_000)
	for strings.HasSuffix(s, "0") && len(s)-strings.IndexByte(s, '.') > 3 {
		s = s[:len(s)-1]
	}
	return s
}

// MarshalJSON writes m as an exact number of dollars.
func (m Money) MarshalJSON() ([]byte, error) {
	sign, n := m.split()
	s := fmt.Sprintf("%s%d.%09d", sign, n/uint64(Dollar), n%uint64(Dollar))
	return []byte(strings.TrimSuffix(strings.TrimRight(s, "0"), ".")), nil
}

func (m Money) split() (sign string, n uint64) {
	if m < 0 {
		return "-", -uint64(m)
	}
	return "", uint64(m)
}

// UnmarshalJSON reads a number of dollars, to the nearest billionth.
func (m *Money) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		return nil // as encoding/json does with every type
	}
	bad := fmt.Errorf("llm: money: want a number of dollars, not %.40s", b)
	d, err := strconv.ParseFloat(string(b), 64)
	if err != nil || math.IsNaN(d) || math.Abs(d) > 1e10 {
		return bad
	}
	if d == 0 || len(b) > 100 {
		*m = Dollars(d)
		return nil
	}
	// A float has less precision than Money, and this number is short enough to be read exactly.
	r, ok := new(big.Rat).SetString(string(b))
	if !ok {
		return bad
	}
	n, err := strconv.ParseInt(r.Mul(r, new(big.Rat).SetInt64(int64(Dollar))).FloatString(0), 10, 64)
	if err != nil {
		return bad
	}
	*m = Money(n)
	return nil
}
