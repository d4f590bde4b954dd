package sim

import (
	"math"
	"time"

	"parley/llm"
)

// bucket is a token bucket. The zero bucket limits nothing.
type bucket struct {
	perMinute float64
	size      float64 // of a full bucket
	level     float64 // below zero after a request larger than the bucket
	at        time.Time
}

func newBucket(perMinute float64, burst time.Duration, now time.Time) bucket {
	if perMinute <= 0 {
		return bucket{}
	}
	size := math.Max(1, perMinute*burst.Minutes())
	return bucket{perMinute: perMinute, size: size, level: size, at: now}
}

func (b *bucket) refill(now time.Time) {
	if passed := now.Sub(b.at); passed > 0 {
		b.level = math.Min(b.size, b.level+b.perMinute*passed.Minutes())
		b.at = now
	}
}

// refuse returns why n cannot be taken now, or nil. A request larger than the bucket, but not than the
// limit, is admitted when the bucket is full and leaves a debt.
func (b *bucket) refuse(now time.Time, what string, n float64) *Refusal {
	if b.perMinute == 0 {
		return nil
	}
	b.refill(now)
	need := math.Min(n, b.size)
	large := n > math.Max(b.perMinute, b.size)
	if b.level >= need-1e-6 && !large {
		return nil
	}
	r := &Refusal{What: what, Limit: b.perMinute, Used: math.Max(0, b.size-b.level), Asked: n, TooLarge: large}
	if !large {
		r.After = b.until(need)
	}
	return r
}

// until returns the time until the bucket reaches level.
func (b *bucket) until(level float64) time.Duration {
	if b.level >= level {
		return 0
	}
	return time.Duration(math.Ceil((level - b.level) / b.perMinute * float64(time.Minute)))
}

func (b *bucket) window(now time.Time) llm.Window {
	if b.perMinute == 0 {
		return llm.Window{}
	}
	b.refill(now)
	return llm.Window{
		Limit: b.perMinute, Remaining: math.Max(0, math.Floor(b.level+1e-6)), Reset: b.until(b.size), Known: true,
	}
}
