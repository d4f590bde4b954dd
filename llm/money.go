package llm

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Money is an amount of US dollars in whole billionths, so that sums are exact
// and equal in any order. One token at $0.05 a million is 50.
type Money int64

// Dollar is one dollar.
const Dollar Money = 1_000_000_000

// Dollars returns the amount nearest to d dollars.
func Dollars(d float64) Money { return Money(math.Round(d * float64(Dollar))) }

// Dollars returns m as a number of dollars.
func (m Money) Dollars() float64 { return float64(m) / float64(Dollar) }

// String writes m in dollars: at least two decimals, and as many as it needs up to six.
func (m Money) String() string {
	s := strconv.FormatFloat(math.Abs(m.Dollars()), 'f', 6, 64)
	for strings.HasSuffix(s, "0") && len(s)-strings.IndexByte(s, '.') > 3 {
		s = s[:len(s)-1]
	}
	if m < 0 {
		return "-$" + s
	}
	return "$" + s
}

// MarshalJSON writes m as a number of dollars.
func (m Money) MarshalJSON() ([]byte, error) {
	return strconv.AppendFloat(nil, m.Dollars(), 'f', -1, 64), nil
}

// UnmarshalJSON reads a number of dollars.
func (m *Money) UnmarshalJSON(b []byte) error {
	d, err := strconv.ParseFloat(string(b), 64)
	if err != nil {
		return fmt.Errorf("llm: money: want a number of dollars, not %s", b)
	}
	*m = Dollars(d)
	return nil
}
