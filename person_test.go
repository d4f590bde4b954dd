package parley_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley"
	"parley/internal/run/seat"
	"parley/journal"
	"parley/world"
)

// TestPerson: a Go program plays a run with a person, who answers from another process.
func TestPerson(t *testing.T) {
	t.Parallel()
	r := duel(words, 1)
	r.File = runFile(t)
	r.Plan.Agents[0] = world.Agent{Name: "one", Model: world.Human, Deadline: time.Hour, Fallback: "two"}
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			for ctx.Err() == nil {
				open, err := seat.Read(ctx, r.File)
				if err != nil && ctx.Err() == nil {
					t.Error(err)
				}
				for _, q := range open {
					if q.Episode == 0 && strings.HasPrefix(q.ID, "0-0-0") { // the second is left to the fallback
						_ = seat.Send(ctx, r.File, seat.Answer{Question: q.ID, Seat: q.Seat, Text: "mine"})
					}
				}
				time.Sleep(time.Minute)
			}
		}()
		result := play(t, r)
		stop()
		<-done
		if result.State != journal.Complete || result.Wall < time.Hour {
			t.Errorf("%+v", result)
		}
	})
	r.File = ""
	if _, err := parley.Play(t.Context(), r); err == nil || !strings.Contains(err.Error(), "play it into a run file") {
		t.Error(err)
	}
}
