package control

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/ask/settings"
	"parley/internal/run/engine"
	"parley/internal/run/planfile"
	"parley/journal"
)

// TestPauseBeforePlay: a pause before play begins is not refused; what else changes a run is.
func TestPauseBeforePlay(t *testing.T) {
	t.Parallel()
	s := NewSteering(nil, &planfile.Plan{Settings: settings.New(settings.Plan)}, nil)
	if _, err := s.Do(journal.SteerPause, "a test", nil); err != nil || s.first == nil {
		t.Error(err)
	}
	if _, err := s.Do(journal.SteerResume, "a test", nil); !errors.Is(err, errNotBegun) {
		t.Error(err)
	}
}

// TestAwaitBegin: a request that comes before play begins waits for that, but not longer than its context or some seconds.
func TestAwaitBegin(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := NewSteering(nil, &planfile.Plan{Settings: settings.New(settings.Plan)}, nil)
		waits := func(ctx context.Context) time.Duration {
			start := time.Now()
			s.AwaitBegin(ctx)
			return time.Since(start)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if got := waits(ctx); got != time.Second {
			t.Errorf("with a context of a second, it waited %v", got)
		}
		if got := waits(t.Context()); got != beginTime {
			t.Errorf("a run that never begins: it waited %v", got)
		}
		time.AfterFunc(time.Second, func() { s.Begin(&engine.Steering{}) })
		if got := waits(t.Context()); got != time.Second {
			t.Errorf("until play began, it waited %v", got)
		}
		s.Begin(&engine.Steering{})
		if got := waits(t.Context()); got != 0 {
			t.Errorf("after play began, it waited %v", got)
		}
	})
}
