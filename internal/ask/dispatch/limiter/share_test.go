package limiter

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/ask/provider"
	"parley/llm"
)

// TestUnsaved: an answer that is not durable counts as a call in flight. Whoever waits for an attempt that has no answer of
// its own is sent after a moment.
func TestUnsaved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var g Gauge
		g.AddUnsaved(0)
		l := New(provider.Limits{Concurrency: 1}, provider.CountUsed, &g, Start{})
		l.Share(Part{Share: 1, Until: time.Now().Add(time.Hour)})
		acquire := func() <-chan *Permit {
			got := make(chan *Permit, 1)
			go func() {
				p, err := l.Acquire(context.Background(), &llm.Request{}, 1, 1)
				if err != nil {
					t.Error(err)
				}
				got <- p
			}()
			return got
		}
		first := <-acquire()
		second := acquire()
		l.Release(first, &llm.Response{}, nil)
		g.AddUnsaved(1)
		time.Sleep(10 * landing)
		if len(second) != 0 || l.Demand().Busy != 1 {
			t.Errorf("a call was sent before the answer to the one before it was saved; busy %v", l.Demand().Busy)
		}
		g.AddUnsaved(-1)
		l.Saved()
		p := <-second
		third := acquire()
		synctest.Wait()
		l.Release(p, &llm.Response{}, nil)
		l.Release(<-third, &llm.Response{}, nil)
		time.Sleep(landing)
	})
}
