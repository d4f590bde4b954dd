package world

import (
	"encoding/json"
	"fmt"
	"math"

	"parley/stats"
)

// Measure declares a score of a kind's outcomes. With it, a mistyped name is found before anything is played, and no
// interval exceeds the possible values.
type Measure struct {
	Name string
	// Seats are the seats that have the score. Empty: it is a score of the whole episode.
	Seats []string
	// Rivals means that seats compete for it and more is better. Reports rate agents by the first such score.
	Rivals bool
	Bounds
}

// measureJSON is a Measure as JSON, which has no infinite numbers.
type measureJSON struct {
	Name       string   `json:"name"`
	Seats      []string `json:"seats,omitempty"`
	Rivals     bool     `json:"rivals,omitempty"`
	Low        *float64 `json:"low,omitempty"`
	High       *float64 `json:"high,omitempty"`
	Difference bool     `json:"difference,omitempty"`
}

// MarshalJSON leaves out a bound that is not a finite number.
func (m Measure) MarshalJSON() ([]byte, error) {
	finite := func(v float64) *float64 {
		if math.IsInf(v, 0) || math.IsNaN(v) {
			return nil
		}
		return &v
	}
	return json.Marshal(measureJSON{m.Name, m.Seats, m.Rivals, finite(m.Low), finite(m.High), m.difference})
}

// UnmarshalJSON reads what MarshalJSON writes. Without low there is no lowest value, and without high no highest.
func (m *Measure) UnmarshalJSON(b []byte) error {
	in := measureJSON{}
	err := json.Unmarshal(b, &in)
	*m = Measure{Name: in.Name, Seats: in.Seats, Rivals: in.Rivals, Bounds: Anything()}
	if m.difference = in.Difference; in.Low != nil {
		m.Low = *in.Low
	}
	if in.High != nil {
		m.High = *in.High
	}
	return err
}

// Bounds are the range of possible values. The zero value, and equal ends, mean that any value is possible.
type Bounds struct {
	Low, High float64

	difference bool // of two values: see Difference
}

// Share returns the bounds of shares, and of values that are 0 or 1.
func Share() Bounds { return Bounds{Low: 0, High: 1} }

// AtLeast0 returns the bounds of counts.
func AtLeast0() Bounds { return Bounds{Low: 0, High: math.Inf(1)} }

// Anything returns bounds that declare that any number is possible. With undeclared bounds (the zero value), a score
// that was only ever 0 or 1 is taken for a share.
func Anything() Bounds { return Bounds{Low: math.Inf(-1), High: math.Inf(1)} }

// Any reports whether no bounds are declared.
func (b Bounds) Any() bool { return b.Low == b.High }

// finite reports whether there is a lowest and a highest value.
func (b Bounds) finite() bool { return !b.Any() && !math.IsInf(b.High-b.Low, 0) }

// Holds reports whether a value is possible. A value that misses a bound by less than rounding errors make is.
func (b Bounds) Holds(value float64) bool {
	const rounding = 1e-9
	if b.Any() || math.IsNaN(value) {
		return true // a value that is no number counts nowhere
	}
	room := rounding * max(1, math.Abs(value))
	return value >= b.Low-room && value <= b.High+room
}

// String describes the bounds: 0 to 1.
func (b Bounds) String() string {
	switch {
	case b.Any(), math.IsInf(b.Low, -1) && math.IsInf(b.High, 1):
		return "any number"
	case math.IsInf(b.High, 1):
		return fmt.Sprintf("%g or more", b.Low)
	case math.IsInf(b.Low, -1):
		return fmt.Sprintf("%g or less", b.High)
	default:
		return fmt.Sprintf("%g to %g", b.Low, b.High)
	}
}

// Hold cuts an interval around a value to the bounds. The true value is within them, so the confidence stays the
// same. It does not change an infinite end, nor an interval whose value is out of bounds.
func (b Bounds) Hold(value float64, i stats.Interval) stats.Interval {
	if b.Any() || value < b.Low || value > b.High {
		return i
	}
	if !math.IsInf(i.Low, -1) {
		i.Low = max(i.Low, b.Low)
	}
	if !math.IsInf(i.High, 1) {
		i.High = min(i.High, b.High)
	}
	return i
}

// Quantity cuts the interval of q to the bounds.
func (b Bounds) Quantity(q stats.Quantity) stats.Quantity {
	q.Interval = b.Hold(q.Value, q.Interval)
	return q
}

// Difference returns the bounds of a difference of two values. A difference is not a share, even if it is only ever
// 0 or 1: its interval is Student's.
func (b Bounds) Difference() Bounds {
	if !b.finite() {
		return Bounds{difference: true}
	}
	return Bounds{Low: b.Low - b.High, High: b.High - b.Low, difference: true}
}

// Join returns bounds that include both b and c.
func (b Bounds) Join(c Bounds) Bounds {
	if b.Any() || c.Any() {
		return Bounds{difference: b.difference || c.difference}
	}
	return Bounds{min(b.Low, c.Low), max(b.High, c.High), b.difference || c.difference}
}
