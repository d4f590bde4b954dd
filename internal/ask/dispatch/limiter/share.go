package limiter

import (
	"math"
	"time"
)

// shared is what a limiter knows of the others that use its account. The zero value is an account
// that nobody else uses.
type shared struct {
	is      bool
	until   time.Time // our part ends then
	asked   time.Time // when Demand was last called
	sums    need      // what the buckets had given then
	waiting int       // the most calls that waited since then
}

// over reports whether our part of the account has ended.
func (s *shared) over(now time.Time) bool { return s.is && !now.Before(s.until) }

// perBucket returns the units in the order of buckets.
func (u Units) perBucket() need {
	return need{requests: u.Requests, tokens: u.Tokens, inputs: u.Input, outputs: u.Output}
}

// Max returns the larger of each unit of u and o.
func (u Units) Max(o Units) Units {
	return Units{
		Requests: math.Max(u.Requests, o.Requests), Tokens: math.Max(u.Tokens, o.Tokens),
		Input: math.Max(u.Input, o.Input), Output: math.Max(u.Output, o.Output),
	}
}

// Part is the part of an account that a limiter may use.
type Part struct {
	// Share is of every limit of the account: 0 sends nothing, 1 is all of it.
	Share float64
	// Until is when the part ends. After it, nothing is sent until there is another.
	Until time.Time
	// Rates are the limits a minute that others have learned from the server. 0 means that none is known.
	Rates Units
}

// Share sets the part of the account that may be used from now on. Calls in flight continue.
func (l *Limiter) Share(p Part) {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	share, rates := 0.0, p.Rates.perBucket()
	if p.Share > 0 { // and a number
		share = math.Min(p.Share, 1)
	}
	for i := range l.buckets {
		b := &l.buckets[i]
		if l.shared.over(now) {
			b.refill(l.shared.until) // nothing was ours since then
			b.last = now
		}
		b.refill(now)
		b.adopt(rates[i])
		b.setShare(share)
	}
	l.adapt.share = share
	l.shared.is, l.shared.until = true, p.Until
	l.pump(now)
}

// setShare changes the part of the account that is ours. What was saved up shrinks with it, and does
// not grow with it: that may have been used by others.
func (b *bucket) setShare(share float64) {
	switch {
	case share == b.share:
		return
	case share < b.share:
		b.level = math.Min(b.level, math.Max(0, b.level*share/b.share))
		b.max *= share / b.share
	case b.share > 0:
		b.max *= share / b.share
	}
	from := b.share
	b.share, b.rate = share, b.whole*share
	if from == 0 {
		b.max = b.burst()
	}
}

// adopt takes over the rate that others have learned, where none is known here.
func (b *bucket) adopt(perMinute float64) {
	if b.configured == 0 && b.whole == 0 && perMinute > 0 {
		b.setRate(perMinute / 60)
	}
}

// Waiting returns how many calls wait.
func (l *Limiter) Waiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.queue.Len()
}

// Demand is how much of an account a limiter uses and could use.
type Demand struct {
	// Use is the part of the account that was taken since the last call of Demand, by the limit that
	// was used most.
	Use float64 `json:"use,omitzero"`
	// Waiting is the largest number of calls that waited since then.
	Waiting int `json:"waiting,omitzero"`
	// Busy is the part of the allowed calls in flight that is in use. 0 if there is no such limit.
	Busy float64 `json:"busy,omitzero"`
	// Least is the smallest part that allows a call in flight. 0 if there is no such limit.
	Least float64 `json:"least,omitzero"`
	// Rates are the limits a minute of the whole account, as far as they are known.
	Rates Units `json:"rates,omitzero"`
}

// Demand returns what was used and needed since it was last called.
func (l *Limiter) Demand() Demand {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	rate := func(i int) float64 { return l.buckets[i].whole * 60 }
	d := Demand{
		Waiting: max(l.shared.waiting, l.queue.Len()),
		Rates:   Units{Requests: rate(requests), Tokens: rate(tokens), Input: rate(inputs), Output: rate(outputs)},
	}
	seconds := now.Sub(l.shared.asked).Seconds()
	for i := range l.buckets {
		b := &l.buckets[i]
		if b.whole > 0 && seconds > 0 {
			d.Use = math.Max(d.Use, math.Min(1, (b.sum-l.shared.sums[i])/(b.whole*seconds)))
		}
		l.shared.sums[i] = b.sum
	}
	if l.adapt.chosen > 0 {
		d.Busy, d.Least = float64(l.taken())/l.adapt.chosen, 1/l.adapt.chosen
	}
	l.shared.asked, l.shared.waiting = now, l.queue.Len()
	return d
}
