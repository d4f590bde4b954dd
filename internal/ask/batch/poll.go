package batch

import (
	"context"
	"math"
	"math/rand/v2"
	"time"
)

// Poll says how often to ask a provider about a batch.
type Poll struct {
	// First is the first pause; each further pause is half as long again. Default: 2s.
	First time.Duration
	// Max is the longest pause. Default: 1m.
	Max time.Duration
	// Settle is how long to look for a batch that may have been created. Default: 30s.
	Settle time.Duration
}

func (p Poll) withDefaults() Poll {
	for _, f := range []struct {
		to  *time.Duration
		def time.Duration
	}{{&p.First, 2 * time.Second}, {&p.Max, time.Minute}, {&p.Settle, 30 * time.Second}} {
		if *f.to <= 0 {
			*f.to = f.def
		}
	}
	return p
}

// pause returns how long to wait before asking the provider again, for the n-th time. It is partly
// random, so that batches are not asked about all at once.
func (p Poll) pause(n int) time.Duration {
	d := min(float64(p.First)*math.Pow(1.5, float64(n)), float64(p.Max))
	return time.Duration(d * (0.8 + 0.4*rand.Float64())) //nolint:forbidigo // it changes when the provider is asked, never what it answers
}

// halt is why a batch is not followed any further.
type halt int

const (
	goOn     halt = iota
	ctxDone       // the wave's context ended
	draining      // durable batches are left for later
	late          // the user's deadline passed
)

// rest waits for d, until wake is closed, or until following must stop. A zero due is no deadline;
// a nil wake never wakes.
func (o *Batcher) rest(ctx context.Context, d time.Duration, due time.Time, wake <-chan struct{}) halt {
	then := goOn
	if !due.IsZero() {
		if left := time.Until(due); left <= d {
			d, then = left, late
		}
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return then
	case <-wake:
		return goOn
	case <-ctx.Done():
		return ctxDone
	case <-o.drained():
		return draining
	}
}
