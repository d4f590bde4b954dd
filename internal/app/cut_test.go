package app

import (
	"testing"
	"testing/synctest"
	"time"

	"parley/journal"
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
