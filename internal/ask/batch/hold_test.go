package batch

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/ask/provider"
	"parley/llm"
)

// TestHold holds calls back while batches are out, wait for room, are refused, or have lines that failed: no batch is
// created meanwhile. Later every call is answered, no line is asked twice, and nothing is left open.
func TestHold(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name            string
		api             *fake
		after           time.Duration // from when on calls are held
		answered, lines int           // before, and in all
	}{
		{"out", &fake{takes: time.Hour}, 10 * time.Minute, 20, 40},
		{"refused", &fake{takes: time.Hour, refuse: func(n int) *llm.Error {
			if n <= 8 {
				return &llm.Error{Kind: llm.KindRateLimited, Status: 429, RetryAfter: time.Minute}
			}
			return nil
		}}, 30 * time.Second, 0, 40},
		{"expired", &fake{takes: time.Hour, expire: 2}, 10 * time.Minute, 0, 60},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, c.api, func(_ *Config, l *provider.Batch) { l.Requests, l.Tokens = 10, 25 })
				reqs, held := ask(40), &llm.Error{Kind: llm.KindCanceled, Message: "held"}
				from := time.Now().Add(c.after)
				time.AfterFunc(c.after, func() { b.Hold(held) })
				first := b.wave(t.Context(), reqs)
				answered, live, failed := tally(t, reqs, first)
				if answered != c.answered || live > 0 || failed != 40-c.answered || slices.ContainsFunc(c.api.creates, from.Before) {
					t.Errorf("%d answered, %d live, %d held; created at %v", answered, live, failed, c.api.creates)
				}
				b.Hold(nil)
				var rest []*llm.Request
				for i := range first {
					if first[i].err != nil {
						rest = append(rest, reqs[i])
					}
				}
				if answered, _, _ := tally(t, rest, b.wave(t.Context(), rest)); answered != len(rest) || c.api.answered() != c.lines || len(b.open()) > 0 {
					t.Errorf("%d of %d answered, %d lines were asked, want %d; left open: %+v", answered, len(rest), c.api.answered(), c.lines, b.open())
				}
			})
		})
	}
}
