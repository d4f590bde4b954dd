package engine

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"parley/journal"
	"parley/llm"
)

// slowJournal takes a minute for a commit, and counts the answers that are not in it yet.
type slowJournal struct {
	journal.Memory
	answered func() int
	kept     int
	waiting  int // at most
}

func (j *slowJournal) Append(ctx context.Context, entries ...journal.Entry) error {
	time.Sleep(time.Minute) // of the bubble's clock
	j.waiting = max(j.waiting, j.answered()-j.kept)
	for _, e := range entries {
		if r, ok := e.(*journal.Replied); ok && r.Request != nil {
			j.kept++
		}
	}
	return j.Memory.Append(ctx, entries...)
}

// TestSlowDisk: no more calls are in flight or not durable yet than may be in flight.
func TestSlowDisk(t *testing.T) {
	t.Parallel()
	want := undisturbed(t, 0, 40)
	synctest.Test(t, func(t *testing.T) {
		const calls = 3
		answered := 0
		m := &models{width: 100, pause: time.Second, fail: func(*llm.Request) error { answered++; return nil }}
		j := &slowJournal{answered: func() int {
			m.mu.Lock()
			defer m.mu.Unlock()
			return answered
		}}
		c := config(m, j, 40)
		c.Calls = calls
		res, err := Run(t.Context(), c)
		if err != nil || res.Digest != want.Digest {
			t.Errorf("%+v, %v; want %+v", res, err, want)
		}
		if m.peak != calls || j.waiting != calls {
			t.Errorf("%d calls in flight and %d answers that were not durable, want %d of each at most", m.peak, j.waiting, calls)
		}
	})
}
