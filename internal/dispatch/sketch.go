package dispatch

import (
	"math"
	"time"
)

// Sketch counts durations in a fixed amount of memory, so that percentiles of any
// number of calls can be read at any time within 3% of the true value.
type Sketch struct {
	counts [sketchSize]uint32
	n      uint64
	sum    time.Duration
	max    time.Duration
}

const (
	sketchParts = 16               // buckets to a doubling
	sketchSize  = 40 * sketchParts // from a microsecond up to twelve days
	sketchUnit  = float64(time.Microsecond)
)

// Add counts d.
func (s *Sketch) Add(d time.Duration) {
	d = max(d, 0)
	i := 0
	if v := float64(d) / sketchUnit; v >= 1 {
		i = min(sketchSize-1, int(math.Log2(v)*sketchParts))
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

// Quantile returns the duration that a share q of all durations does not exceed, or
// 0 where there are none.
func (s *Sketch) Quantile(q float64) time.Duration {
	rank := uint64(math.Ceil(q * float64(s.n)))
	var seen uint64
	for i, c := range s.counts {
		if seen += uint64(c); c > 0 && seen >= rank {
			mid := math.Exp2((float64(i) + 0.5) / sketchParts)
			return min(s.max, time.Duration(mid*sketchUnit))
		}
	}
	return s.max
}

// Buckets calls each for every range of durations that has any, from short to long, with
// its ends and how many there were in it.
func (s *Sketch) Buckets(each func(low, high time.Duration, n int)) {
	edge := func(i int) time.Duration {
		if i == 0 {
			return 0 // what is under a microsecond is in the first
		}
		return time.Duration(math.Exp2(float64(i)/sketchParts) * sketchUnit)
	}
	for i, c := range s.counts {
		if c > 0 {
			each(edge(i), edge(i+1), int(c))
		}
	}
}
