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

// TestRefusalsAreReported: what calls wait for is reported while a provider answers none of them,
// and not after it answers. A drain ends calls that wait between two attempts at once.
func TestRefusalsAreReported(t *testing.T) {
	t.Parallel()
	for kind, want := range map[llm.Kind]string{
		llm.KindOverloaded:  "lab/m is overloaded for 1m0s: 503 come back later; 12 calls wait, each retried for up to 1h0m0s",
		llm.KindRateLimited: "lab/m is rate-limited for 1m0s: 503 come back later; 12 calls wait, each retried for up to 1h0m0s",
	} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				f := &flaky{from: start, until: start.Add(5 * time.Minute), away: &llm.Error{Kind: kind, Status: 503, Message: "come back later"}}
				d := dispatcher(t, f, provider.Provider{}, func(*Config) {})
				ask := func(n int, check func(error)) *sync.WaitGroup {
					var wg sync.WaitGroup
					for range n {
						wg.Go(func() {
							_, err := d.Ask(t.Context(), &llm.Request{Model: "lab/m"})
							check(err)
						})
					}
					return &wg
				}
				wg := ask(12, func(err error) {
					if err != nil {
						t.Error(err)
					}
				})
				time.Sleep(time.Second)
				if got := d.Waits(time.Now()); len(got) != 0 {
					t.Errorf("after a second: %+v", got)
				}
				time.Sleep(59 * time.Second)
				if got := d.Waits(time.Now()); len(got) != 1 || got[0].Text() != want {
					t.Errorf("%+v, want %q", got, want)
				}
				wg.Wait()
				if got := d.Waits(time.Now().Add(time.Hour)); len(got) != 0 {
					t.Errorf("after all were answered: %+v", got)
				}

				f.until = time.Now().Add(time.Hour)
				var drained time.Time
				wg = ask(3, func(err error) {
					if llm.KindOf(err) != llm.KindCanceled || kind == llm.KindOverloaded && !strings.Contains(err.Error(), "come back later") || !time.Now().Equal(drained) {
						t.Errorf("%v after the drain: %v", time.Since(drained), err)
					}
				})
				time.Sleep(time.Minute)
				synctest.Wait()
				drained = time.Now()
				d.Drain()
				d.Drain()
				wg.Wait()
			})
		})
	}
}
