// Package sketch counts durations in a fixed amount of memory.
package sketch

import (
	"math"
	"time"
)

// Sketch counts durations. It reads percentiles of any number of them at any time, within 3% of the
// true value. The zero value is empty.
type Sketch struct {
	counts [size]uint32
	n      uint64
	sum    time.Duration
	max    time.Duration
}

const (
	parts = 16         // buckets to a doubling
	size  = 40 * parts // from a microsecond up to twelve days
	unit  = float64(time.Microsecond)
)

// Add counts d.
func (s *Sketch) Add(d time.Duration) {
	d = max(d, 0)
	i := 0
	if v := float64(d) / unit; v >= 1 {
		i = min(size-1, int(math.Log2(v)*parts))
	}
	s.counts[i]++
	s.n++
	s.sum += d
	s.max = max(s.max, d)
}

// Count is how many durations were added.
func (s *Sketch) Count() uint64 { return s.n }

// Mean is the mean of all durations, exactly.
func (s *Sketch) Mean() time.Duration {
	if s.n == 0 {
		return 0
	}
	return s.sum / time.Duration(s.n)
}

// Max is the longest of all durations, exactly.
func (s *Sketch) Max() time.Duration { return s.max }

// Quantile returns the duration that a share q of all durations does not exceed, or 0 without any.
func (s *Sketch) Quantile(q float64) time.Duration {
	rank := uint64(math.Ceil(q * float64(s.n)))
	var seen uint64
	for i, c := range s.counts {
		if seen += uint64(c); c > 0 && seen >= rank {
			mid := math.Exp2((float64(i) + 0.5) / parts)
			return min(s.max, time.Duration(mid*unit))
		}
	}
	return s.max
}

// Buckets calls each for every range that has durations, from short to long, with the bounds of the
// range and how many durations it has.
func (s *Sketch) Buckets(each func(low, high time.Duration, n int)) {
	edge := func(i int) time.Duration {
		if i == 0 {
			return 0 // durations under a microsecond are in the first range
		}
		return time.Duration(math.Exp2(float64(i)/parts) * unit)
	}
	for i, c := range s.counts {
		if c > 0 {
			each(edge(i), edge(i+1), int(c))
		}
	}
}

// Merge adds the durations of o.
func (s *Sketch) Merge(o *Sketch) {
	if o.n == 0 {
		return
	}
	for i, c := range o.counts {
		s.counts[i] += c
	}
	s.n += o.n
	s.sum += o.sum
	s.max = max(s.max, o.max)
}
