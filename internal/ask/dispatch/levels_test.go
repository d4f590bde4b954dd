package dispatch

import (
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/ask/dispatch/limiter"
	"parley/internal/ask/provider"
	"parley/llm"
)

// remembered is a Levels for one server.
type remembered struct{ limiter.Level }

func (r *remembered) Load(provider.Provider, string, string) limiter.Level { return r.Level }
func (r *remembered) Save(_ provider.Provider, _, _ string, l limiter.Level) error {
	r.Level = l
	return nil
}

// TestNextRunKnowsTheLimit: a second run of a provider that allows few calls has nearly no refusals.
// If it allows fewer than it did, the promise about refusals still holds.
func TestNextRunKnowsTheLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		known := &remembered{}
		for _, c := range []struct{ allows, refused int }{{100, 40}, {100, 8}, {1000, 0}, {20, 40}, {20, 8}} {
			p := &place{allows: c.allows, latency: time.Second, refusing: 50 * time.Millisecond, says: llm.Error{Kind: llm.KindRateLimited, Status: 429}}
			d := dispatcher(t, p, at(false), func(c *Config) { c.Levels = known })
			d.All(t.Context(), asked(3000, 10, 1))
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
			if p.refused > c.refused || c.allows < 1000 && known.Level != (limiter.Level{InFlight: c.allows, Limited: true}) {
				t.Errorf("allows %d: %d refused; then known: %+v", c.allows, p.refused, known.Level)
			}
		}
		chosen := at(false)
		chosen.Limits.Concurrency = 5
		d := dispatcher(t, patient(time.Second), chosen, func(c *Config) { c.Levels = known })
		d.All(t.Context(), asked(20, 10, 1))
		if _ = d.Close(); known.InFlight != 20 {
			t.Errorf("a limit that the user chose is stored: %+v", known.Level)
		}
	})
}
