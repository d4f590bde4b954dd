package trainer

import (
	"context"
	"encoding/json"
)

// Control changes a run while it is played. Only Change affects what is played. Once the run has ended, it does nothing.
type Control interface {
	// Pause sends no more calls. Unless those in flight are held, it returns when there are none and all answers are
	// durable, or when ctx is done. Resume sends calls again. Both are recorded in the run.
	Pause(ctx context.Context, by string, calls InFlight) error
	Resume(by string) error
	// Past says which earlier versions of the weights can be asked: agents with a model such as lab/policy@past play them.
	Past(versions []int)
	// Until begins only the episodes with a number below n, until it is called with a larger one.
	Until(n int)
	// Change gives a change to the plan, which is a part.ChangingStages, for its later stages. It is recorded in the run. by
	// and detail describe it.
	Change(by, detail string, change json.RawMessage) error
}

// InFlight says what happens to the calls in flight when a run is paused.
type InFlight string

// What happens to them.
const (
	HoldCalls   InFlight = "hold"   // they stay open, and their answers count when they come
	FinishCalls InFlight = "finish" // they are finished
	CutCalls    InFlight = "cut"    // they are cut off, and sent again when the run is resumed
)

// Ending says how playing a plan ended.
type Ending struct {
	// State is complete, stopped or failed. A stopped run can be resumed.
	State string
	// Reason says why it stopped or failed.
	Reason string
}
