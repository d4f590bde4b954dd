package sim

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// maxDelay is the maximum delay.
const maxDelay = time.Hour

// Delay is a distribution of durations. The zero Delay is no delay.
//
// As text it is a duration (1s), a range (200ms..2s), or lognormal:MEDIAN,SIGMA
// (lognormal:800ms,0.6).
type Delay struct {
	kind   delayKind
	lo, hi time.Duration // fixed, and the median: lo
	sigma  float64
}

type delayKind uint8

const (
	fixedDelay delayKind = iota
	uniform
	lognormal
)

// Fixed returns the Delay that is always d.
func Fixed(d time.Duration) Delay { return Delay{lo: d} }

// ParseDelay parses the text form of a Delay.
func ParseDelay(s string) (Delay, error) {
	bad := func(err error) (Delay, error) {
		return Delay{}, fmt.Errorf("sim: delay %q: %w: want a form such as 1s, 200ms..2s, or lognormal:800ms,0.6", s, err)
	}
	d := Delay{}
	var err error
	switch {
	case s == "":
		return d, nil
	case strings.HasPrefix(s, "lognormal:"):
		median, sigma, ok := strings.Cut(strings.TrimPrefix(s, "lognormal:"), ",")
		if !ok {
			return bad(errors.New("sigma is missing"))
		}
		d.kind = lognormal
		if d.sigma, err = strconv.ParseFloat(sigma, 64); err != nil || !(d.sigma >= 0 && d.sigma <= 10) {
			return bad(fmt.Errorf("sigma %q is not between 0 and 10", sigma))
		}
		d.lo, err = parseDuration(median)
	case strings.Contains(s, ".."):
		lo, hi, _ := strings.Cut(s, "..")
		d.kind = uniform
		if d.lo, err = parseDuration(lo); err != nil {
			return bad(err)
		}
		if d.hi, err = parseDuration(hi); err == nil && d.hi < d.lo {
			err = errors.New("the end is before the beginning")
		}
	default:
		d.lo, err = parseDuration(s)
	}
	if err != nil {
		return bad(err)
	}
	return d, nil
}

func parseDuration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%q is not a duration", s)
	case d < 0 || d > maxDelay:
		return 0, fmt.Errorf("%v is not between 0 and %v", d, maxDelay)
	}
	return d, nil
}

// IsZero reports whether d is no delay.
func (d Delay) IsZero() bool { return d == Delay{} || d.kind == fixedDelay && d.lo == 0 }

// Draw returns a duration of the distribution, determined by seed.
func (d Delay) Draw(seed uint64) time.Duration {
	if d.kind == fixedDelay {
		return d.lo
	}
	r := rand.New(rand.NewPCG(seed, 0x5ca1ab1e))
	f := float64(d.lo)
	switch d.kind {
	case uniform:
		f += r.Float64() * float64(d.hi-d.lo)
	case lognormal:
		f *= math.Exp(d.sigma * r.NormFloat64())
	}
	return time.Duration(math.Min(f, float64(maxDelay)))
}
