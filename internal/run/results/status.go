package results

import (
	"encoding/json"
	"fmt"

	"parley/internal/kit/text"
	"parley/internal/run/runfile"
	"parley/journal"
	"parley/llm"
)

// Status is the state of a run for people. Everything that shows a run gets it from StatusOf, so that all say the same.
type Status struct {
	State  State  `json:"state"`
	Reason string `json:"reason,omitempty"` // in one line; it may be hostile
}

// State is the name of the state of a run.
type State string

// The states of a run. While a process plays it, it is one of the first four.
const (
	StatePlaying  State = "playing"
	StatePaused   State = "paused"   // no call is sent until it is resumed
	StateDraining State = "draining" // no more episodes begin
	StateStopping State = "stopping" // no more calls are sent
	StateCutOff   State = "cut off"  // its process was killed

	StateNew      State = "new"      // no process has played it
	StateComplete State = "complete" // everything that the plan asked for was played, and no episode failed
	StateSome     State = "some failed"
	StateAll      State = "all failed"
	StateStopped  State = "stopped" // by the user or a budget
	StateFailed   State = "failed"  // something is wrong that a resumed run will meet again
)

// Class says how good a state is: its colour.
type Class string

// The classes.
const (
	ClassGood    Class = "good"    // it is complete
	ClassBad     Class = "bad"     // somebody has to look at it
	ClassWarning Class = "warning" // it is held, or parts of it failed
	ClassBusy    Class = "busy"    // it is played
	ClassNone    Class = "none"
)

// Class returns the class of a state.
func (s State) Class() Class {
	switch s {
	case StatePlaying:
		return ClassBusy
	case StatePaused, StateDraining, StateStopping, StateStopped, StateSome:
		return ClassWarning
	case StateComplete:
		return ClassGood
	case StateFailed, StateAll, StateCutOff:
		return ClassBad
	default:
		return ClassNone
	}
}

// Effect says what the process that plays a run in this state does.
func (s State) Effect() string {
	switch s {
	case StatePlaying:
		return "a process plays it"
	case StatePaused:
		return "no call is sent until it is resumed"
	case StateDraining:
		return "episodes that have begun are played to their end, and no more begin"
	case StateStopping:
		return "no more calls are sent"
	default:
		return ""
	}
}

// Played reports whether a process plays a run in this state.
func (s State) Played() bool {
	return s == StatePlaying || s == StatePaused || s == StateDraining || s == StateStopping
}

// Complete reports whether everything that the plan asked for was played, whatever became of it.
func (s State) Complete() bool { return s == StateComplete || s == StateSome || s == StateAll }

// Unfinished is what an episode that has begun and did not end is called while no process plays its run.
const Unfinished = "unfinished"

// OfEpisode returns the state of an episode of a run in this state, for people: nothing is playing where no process plays.
func (s State) OfEpisode(state string) string {
	if state == runfile.Playing && !s.Played() {
		return Unfinished
	}
	return state
}

// StatusOf returns the state of a run. played is whether a process has its file open: see runfile.Played.
func StatusOf(o runfile.Outline, played bool) Status {
	switch {
	case o.Open && !played:
		return Status{StateCutOff, "the process that played it was killed, or runs where it cannot be seen; parley run continues it"}
	case o.Open:
		return playedStatus(o)
	case o.Last.State == "":
		return Status{StateNew, "not played yet"}
	case o.Last.State != journal.Complete:
		return Status{State(o.Last.State), o.Last.Reason.String()}
	case o.Episodes.Failed == 0:
		return Status{State: StateComplete}
	case o.Episodes.Ended == 0:
		return Status{StateAll, "it is complete, and " + failedOf(o.Episodes.Failed, o.Episodes.Failed)}
	default:
		return Status{StateSome, "it is complete, and " + failedOf(o.Episodes.Failed, o.Episodes.Done())}
	}
}

// playedStatus returns the state of a run that a process plays.
func playedStatus(o runfile.Outline) Status {
	var state State
	var by *journal.Steered
	switch {
	case o.Stopping != nil:
		state, by = StateStopping, o.Stopping
	case o.Paused != nil:
		state, by = StatePaused, o.Paused
	case o.Draining != nil:
		state, by = StateDraining, o.Draining
	default:
		return Status{StatePlaying, StatePlaying.Effect()}
	}
	return Status{state, fmt.Sprintf("by %s at %s: %s", by.By, by.At.UTC().Format("15:04:05 UTC"), state.Effect())}
}

// failedOf says how many episodes failed.
func failedOf(failed, all int) string {
	switch {
	case all == 1:
		return "its episode failed"
	case failed == all:
		return fmt.Sprintf("all %s episodes failed", text.GroupDigits(all))
	default:
		return fmt.Sprintf("%s of %s episodes failed", text.GroupDigits(failed), text.GroupDigits(all))
	}
}

// BudgetIn returns the budget of a recorded plan, or 0.
func BudgetIn(plan json.RawMessage) llm.Money {
	var p struct{ Budget llm.Money }
	if json.Unmarshal(plan, &p) != nil {
		return 0
	}
	return p.Budget
}
