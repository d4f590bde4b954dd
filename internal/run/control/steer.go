package control

import (
	"context"
	"fmt"
	"time"

	"parley/journal"
	"parley/llm"
)

// SteerVerb is the verb with which people steer a run. Its arguments are a Request, and its value is
// an Answer.
const SteerVerb = "steer"

// Request asks to steer a run.
type Request struct {
	Verb journal.SteerVerb `json:"verb"`
	By   string            `json:"by"`             // from where, such as ctl
	Sets []string          `json:"sets,omitempty"` // with SteerSet, such as budget=20
}

// The states of a run that is played, and of one whose process was killed.
const (
	CutOff   = "cut off"
	Playing  = "playing"
	Paused   = "paused"
	Draining = "draining"
	Stopping = "stopping"
)

// Answer is how a run is played after a request.
type Answer struct {
	State       string     `json:"state"`
	Draining    bool       `json:"draining,omitempty"` // it begins no more episodes, also while it is paused
	By          string     `json:"by,omitempty"`       // who paused or drained it
	At          *time.Time `json:"at,omitempty"`       // when
	InFlight    int64      `json:"in_flight"`          // calls
	Spent       llm.Money  `json:"spent_usd"`
	Budget      llm.Money  `json:"budget_usd,omitempty"`
	Concurrency int        `json:"concurrency,omitempty"`
}

// Text returns the answer as a line.
func (a Answer) Text() string {
	text := a.State
	switch a.State {
	case Paused:
		text = "paused: no call is sent until it is resumed"
		if a.Draining {
			text = "paused and draining: no call is sent until it is resumed; then episodes that have begun are played to their end, and no more begin"
		}
	case Draining:
		text = "draining: episodes that have begun are played to their end, and no more begin"
	case Stopping:
		text = "stopping: no more calls are sent"
	}
	text += fmt.Sprintf("; %d in flight, %v", a.InFlight, a.Spent)
	if a.Budget > 0 {
		text += fmt.Sprintf(" of %v", a.Budget)
	}
	if a.Concurrency > 0 {
		text += fmt.Sprintf(", concurrency %d", a.Concurrency)
	}
	return text
}

// Steer sends a request to the process that plays run.
func Steer(ctx context.Context, run string, r Request) (a Answer, err error) {
	err = Send(ctx, run, SteerVerb, r, &a)
	return a, err
}
