package dispatch

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/ask/provider"
	"parley/llm"
)

// TestRateIsBackAfterAWeightSync: a server that gets new weights refuses every call for half a minute, with a reason of its own. Two
// seconds after it accepts calls again, as many are in flight as before, also if answers take long.
func TestRateIsBackAfterAWeightSync(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		latency time.Duration
		limit   int
	}{{time.Second, 0}, {20 * time.Second, 0}, {time.Second, 64}, {20 * time.Second, 8}} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			f := &flaky{
				from: start.Add(50 * time.Second), until: start.Add(80 * time.Second), latency: tt.latency,
				away: &llm.Error{Kind: llm.KindOverloaded, Status: 503, Message: "weights are being updated"},
			}
			var reported []string
			d := dispatcher(t, f, provider.Provider{Limits: provider.Limits{Concurrency: tt.limit}}, waiting(10*time.Minute, func(c *Config) {
				c.Outages = func(o Outage) { reported = append(reported, o.Text(time.Now())) }
			}))
			var wg sync.WaitGroup
			for range 600 {
				wg.Go(func() {
					for time.Since(f.until) < 10*time.Second {
						if _, err := d.Ask(t.Context(), asked(1, 10, 1)[0]); err != nil {
							t.Error(err)
							return
						}
					}
				})
			}
			time.Sleep(time.Until(f.from) - time.Millisecond)
			before := d.Stats().InFlight
			time.Sleep(time.Until(f.until) + 2*time.Second)
			if now := d.Stats().InFlight; before < 8 || float64(now) < 0.9*float64(before) {
				t.Errorf("%+v: %d calls in flight after 2 seconds, %d before", tt, now, before)
			}
			wg.Wait()
			if limit := 3*600 + 5*30; len(f.tries) > limit {
				t.Errorf("%+v: %d tries while it refused all calls, want at most %d", tt, len(f.tries), limit)
			}
			if len(reported) != 2 || reported[0] != "lab refuses all calls: 503 weights are being updated" || !strings.HasPrefix(reported[1], "lab answers again after ") {
				t.Errorf("%+v: reported %q", tt, reported)
			}
		})
	}
}
