package control

import (
	"math"
	"time"
)

// History is what a process did since it began: a limited number of points at equal intervals.
type History struct {
	Every  time.Duration `json:"every_ns"` // the interval
	Points []Point       `json:"points"`

	sum   Point // of the states since the last point
	n     int   // how many these are
	ticks int   // how many make a point
}

// Point is means over an interval. It is written as a list: the file is written once a second.
type Point [5]float64

// The numbers of a Point.
const (
	PointInFlight = iota // calls
	PointCalls           // a second
	PointTokens          // a second
	PointErrors          // failed attempts a second
	PointSpent           // dollars in all
)

// maxPoints is how many points there are at most. Then each two become one.
const maxPoints = 300

// add adds a state. There is one every second.
func (h *History) add(s *LiveState) {
	p := Point{PointInFlight: float64(s.InFlight), PointCalls: s.CallsPerSecond, PointTokens: s.TokensPerSecond, PointErrors: s.ErrorsPerSecond, PointSpent: s.Spent.Dollars()}
	h.sum = h.sum.plus(p)
	h.ticks = max(1, h.ticks)
	if h.n++; h.n < h.ticks {
		return
	}
	h.Points = append(h.Points, h.sum.over(h.n))
	h.sum, h.n = Point{}, 0
	if len(h.Points) == maxPoints {
		half := make([]Point, maxPoints/2, maxPoints) // what was written before stays as it is
		for i := range half {
			half[i] = h.Points[2*i].plus(h.Points[2*i+1]).over(2)
		}
		h.Points, h.ticks = half, 2*h.ticks
	}
	h.Every = time.Duration(h.ticks) * every
}

func (p Point) plus(q Point) Point {
	for i := range p {
		p[i] += q[i]
	}
	return p
}

// over returns the mean of n points, rounded: the file should be short.
func (p Point) over(n int) Point {
	for i := range p {
		p[i] = math.Round(p[i]/float64(n)*precision) / precision
	}
	return p
}

// precision is how finely points are rounded.
const precision = 1e4
