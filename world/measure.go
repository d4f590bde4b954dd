package world

import (
	"math"

	"parley/stats"
)

// Measure declares a score that outcomes of a kind may hold, so that a name that is
// mistyped is found before anything is played, and no interval goes beyond what the score
// can be.
type Measure struct {
	Name string
	// Seats are whose score it is. Empty: the whole episode's.
	Seats []string
	// Rivals means that seats compete for it, and who has more is stronger: reports rate agents
	// by the first such score.
	Rivals bool
	Bounds
}

// Bounds are what values can be. The zero value, and one whose ends are the same, is
// anything.
type Bounds struct {
	Low, High float64

	difference bool // of two values: see Difference
}

// Share are the bounds of shares, and of what is 0 or 1.
func Share() Bounds { return Bounds{Low: 0, High: 1} }

// AtLeast0 are the bounds of counts.
func AtLeast0() Bounds { return Bounds{Low: 0, High: math.Inf(1)} }

// Anything are the bounds of what can be any number. Bounds that are not declared are the zero
// value: there a score that was only ever 0 or 1 is taken for a share.
func Anything() Bounds { return Bounds{Low: math.Inf(-1), High: math.Inf(1)} }

// Any says whether nothing is declared of values.
func (b Bounds) Any() bool { return b.Low == b.High }

// finite says whether values have a lowest and a highest.
func (b Bounds) finite() bool { return !b.Any() && !math.IsInf(b.High-b.Low, 0) }

// Hold returns the part of an interval around a value that is within the bounds. The true
// value is there, so it is held as often as before. An end of which nothing is known stays
// so, and so does what the value itself contradicts.
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

// Quantity holds a quantity's interval.
func (b Bounds) Quantity(q stats.Quantity) stats.Quantity {
	q.Interval = b.Hold(q.Value, q.Interval)
	return q
}

// Difference are the bounds of a difference of two values. A difference is no share, even where it
// is only ever 0 or 1: its interval is Student's.
func (b Bounds) Difference() Bounds {
	if !b.finite() {
		return Bounds{difference: true}
	}
	return Bounds{Low: b.Low - b.High, High: b.High - b.Low, difference: true}
}

// Join are bounds that hold whatever either does.
func (b Bounds) Join(c Bounds) Bounds {
	if b.Any() || c.Any() {
		return Bounds{difference: b.difference || c.difference}
	}
	return Bounds{min(b.Low, c.Low), max(b.High, c.High), b.difference || c.difference}
}
