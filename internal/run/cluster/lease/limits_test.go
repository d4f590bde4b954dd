package lease

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/ask/provider"
	"parley/internal/ask/sim"
)

// TestSharedLimits: four workers reach nearly all of a limit from the start, for a minute in which one dies
// and another joins, and are refused nearly nothing. The network loses, delays and doubles messages. Every second limit is tried, with
// one latency, or with PARLEY_SWEEP, which .ci/run kills sets, every one with all.
func TestSharedLimits(t *testing.T) {
	t.Parallel()
	const rpm, itpm, otpm, short, long = 6000, 1_800_000, 600_000, 2 * time.Second, 4 * time.Second
	for n, tt := range []struct {
		name   string
		server sim.Limits
		given  provider.Limits
		silent bool
	}{
		{"requests, configured", sim.Limits{RPM: rpm, Burst: short}, provider.Limits{RPM: rpm}, false},
		{"requests, no headers", sim.Limits{RPM: rpm, Burst: short}, provider.Limits{RPM: rpm}, true},
		{"requests, by headers", sim.Limits{RPM: rpm, Burst: short}, provider.Limits{}, false},
		{"input, configured", sim.Limits{ITPM: itpm, Burst: short}, provider.Limits{ITPM: itpm}, false},
		{"input, no headers", sim.Limits{ITPM: itpm, Burst: short}, provider.Limits{ITPM: itpm}, true},
		{"input, by headers", sim.Limits{ITPM: itpm, Burst: short}, provider.Limits{}, false},
		{"output, configured", sim.Limits{OTPM: otpm, Burst: long}, provider.Limits{OTPM: otpm}, false},
		{"output, no headers", sim.Limits{OTPM: otpm, Burst: long}, provider.Limits{OTPM: otpm}, true},
		{"output, by headers", sim.Limits{OTPM: otpm, Burst: long}, provider.Limits{}, false},
		{"short output, no headers", sim.Limits{OTPM: otpm / 8, Burst: long}, provider.Limits{OTPM: otpm / 8}, true},
		{"short output, by headers", sim.Limits{OTPM: otpm / 8, Burst: long}, provider.Limits{}, false},
	} {
		for i, latency := range []time.Duration{time.Second, 300 * time.Millisecond, 4 * time.Second} {
			switch {
			case strings.HasPrefix(tt.name, "short") && latency > time.Second: // it takes too long to know that they are short
				continue
			case os.Getenv("PARLEY_SWEEP") == "" && (i != (n+n/3)%3 || n%2 > 0 || testing.Short() && n%5 > 0):
				continue
			}
			t.Run(fmt.Sprint(tt.name, " ", latency), func(t *testing.T) {
				t.Parallel()
				const plays = 3 // a play may lose messages that matter: each reaches most of the limit, and all together nearly all
				meanWhole, meanReached, meanRefused := 0.0, 0.0, 0.0
				for seed := range plays {
					synctest.Test(t, func(t *testing.T) {
						l := newLimitsLab(t, tt.server, tt.given, tt.silent, uint64(plays*i+seed))
						l.account.latency, l.account.short = latency, strings.HasPrefix(tt.name, "short")
						later, all := l.play(t.Context()), l.account.total()
						reached, whole := 0.0, 0.0
						for i, perMinute := range []float64{tt.server.RPM, tt.server.ITPM, tt.server.OTPM} {
							if perMinute > 0 {
								reached = later[i] / perMinute / (playFor - playFrom).Minutes()
								whole = all[i] / perMinute / playFor.Minutes()
							}
						}
						a := l.account
						refused := float64(a.refused) / float64(a.asked)
						meanWhole, meanReached, meanRefused = meanWhole+whole/plays, meanReached+reached/plays, meanRefused+refused/plays
						t.Logf("%.3f of the limit, %.3f after %v; %d of %d refused", whole, reached, playFrom, a.refused, a.asked)
						if whole < 0.85 || reached < 0.85 || refused > 0.02 {
							t.Errorf("%.3f of the limit, %.3f after %v; %.4f refused", whole, reached, playFrom, refused)
						}
					})
				}
				least := 0.95
				if strings.HasPrefix(tt.name, "short") {
					least = 0.9 // from the first call on: it takes seconds to know that answers are short
				}
				if meanWhole < least || meanReached < 0.95 || meanRefused > 0.005 {
					t.Errorf("in the mean %.3f of the limit, %.3f after %v; %.4f refused", meanWhole, meanReached, playFrom, meanRefused)
				}
			})
		}
	}
}

// TestSharedConcurrency: workers never have more calls in flight than the user allows, and nearly always as
// many, even if they are more workers than calls.
func TestSharedConcurrency(t *testing.T) {
	t.Parallel()
	for _, allowed := range []int{3, 10, 101} {
		t.Run(fmt.Sprint(allowed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := newLimitsLab(t, sim.Limits{}, provider.Limits{Concurrency: allowed}, false, 1)
				l.account.latency = time.Second
				used := l.play(t.Context())
				mean := used[0] / (playFor - playFrom).Seconds() * 1.03 // seconds that a call takes
				t.Logf("%.2f of %d in flight, at most %d", mean, allowed, l.account.busiest)
				if l.account.busiest > allowed || mean < 0.85*float64(allowed) {
					t.Errorf("%.2f of %d in flight, at most %d", mean, allowed, l.account.busiest)
				}
			})
		})
	}
}
