package app

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"parley/journal"
	"parley/llm"
	"parley/worlds"
)

// TestCutSendsAgain: a cut ends the calls in flight at once, also if the run is paused already. Nothing of them is recorded
// until they are sent again, and then what they may have cost is.
func TestCutSendsAgain(t *testing.T) {
	t.Parallel()
	for _, paused := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			quiet, model := newSlowModel(t), newSlowModel(t)
			want := playSteered(t, &journal.Memory{}, quiet, nil, "budget=20")
			cut := 0
			j := &journal.Memory{}
			sum := playSteered(t, j, model, func(r *steeredRun) {
				time.Sleep(4500 * time.Millisecond)
				if paused {
					r.do(journal.SteerPause)
				}
				sent, inFlight := model.state()
				cut = len(inFlight)
				if err := r.Cut("a test"); err != nil {
					t.Error(err)
				}
				synctest.Wait() // no time passes
				_, still := model.state()
				head, _ := j.Head(t.Context()) // Memory never fails
				if cut == 0 || len(still) > 0 || head.Calls != sent-cut {
					t.Errorf("%d in flight before the cut, %d after it, %d of %d recorded", cut, len(still), head.Calls, sent)
				}
				if err := r.Quiet(t.Context()); err != nil {
					t.Error(err)
				}
				time.Sleep(30 * time.Hour)
				if later, _ := model.state(); later != sent {
					t.Errorf("%d calls were sent while the run was paused", later-sent)
				}
				r.do(journal.SteerResume)
			}, "budget=20")
			if sum.Digest != want.Digest || sum.Calls.Failed > 0 || *sum.Cost <= *want.Cost || model.sent != quiet.sent+cut {
				t.Errorf("%s, %d failed, %v, %d sent, %d cut off; want %s, more than %v, %d sent", sum.Digest, sum.Calls.Failed, *sum.Cost, model.sent, cut, want.Digest, *want.Cost, quiet.sent)
			}
		})
	}
}

// TestCutThenStopped: what calls that were cut off may have cost is owed after a stop too, and the next process counts it.
func TestCutThenStopped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j, opened := &journal.Memory{}, make(chan Opened, 1)
		drain, stop := context.WithCancel(t.Context())
		defer stop()
		go func() {
			o := <-opened
			time.Sleep(4500 * time.Millisecond)
			if err := errors.Join(o.Steering.Cut("a test"), o.Steering.Quiet(t.Context())); err != nil {
				t.Error(err)
			}
			stop()
		}()
		p := Play{Kinds: worlds.Standard(), Plan: parsed(t, steeredPlan, "budget=20"), Journal: j, Models: map[string]llm.Model{"openai": newSlowModel(t)}, Opened: func(o Opened) { opened <- o }}
		if _, err := p.Run(t.Context(), drain); err != nil {
			t.Fatal(err)
		}
		head, _ := j.Head(t.Context()) // Memory never fails
		if head.Last.Lost == 0 || head.Owed == 0 {
			t.Errorf("%d calls are lost, %v is owed", head.Last.Lost, head.Owed)
		}
	})
}
