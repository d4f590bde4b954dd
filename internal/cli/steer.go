package cli

import (
	"context"
	"encoding/json"
	"errors"

	"parley/internal/cli/app"
	"parley/internal/cli/exit"
	"parley/internal/run/control"
	"parley/internal/run/seat"
	"parley/journal"
)

// serveControl takes requests from other processes while a run is played, until end is called.
func serveControl(ctx context.Context, s *State, o app.Opened, g *exit.Gate, stop context.CancelCauseFunc) (end func()) {
	if o.Steering == nil {
		return func() {}
	}
	handlers := map[string]control.Handler{control.SteerVerb: steered(s, o, g, stop)}
	if o.Seats != nil {
		handlers[seat.Verb] = o.Seats.Handle
	}
	end, err := control.Serve(ctx, o.File, handlers)
	if err != nil {
		s.tell("the run cannot be steered, and takes no answers of people: " + err.Error())
		return func() {}
	}
	return end
}

// steered carries out the requests of parley ctl and of pages. stop ends the run as a signal does.
func steered(s *State, o app.Opened, g *exit.Gate, stop context.CancelCauseFunc) control.Handler {
	return func(ctx context.Context, args json.RawMessage) (any, error) {
		var r control.Request
		if err := json.Unmarshal(args, &r); err != nil {
			return nil, err
		}
		if len(r.By) > maxBy || len(r.Sets) > maxSets {
			return nil, errors.New("the request is too long")
		}
		o.Steering.AwaitBegin(ctx)
		state, err := o.Steering.Do(r.Verb, r.By, r.Sets)
		if err != nil {
			return nil, err
		}
		if r.Verb == journal.SteerStop {
			stop(errors.New("stopped by " + r.By))
			g.Close(exit.Interrupted, nil)
		}
		a := answerOf(state, o)
		if g.Closed() {
			a.State = control.Stopping
		}
		s.tell(r.By + ": " + a.Text())
		return a, nil
	}
}

// The limits of a request.
const (
	maxBy   = 100
	maxSets = 10
)

func answerOf(state control.SteerState, o app.Opened) control.Answer {
	st := o.App.Stats()
	spent, _ := o.App.Budget().Spent()
	a := control.Answer{State: control.Playing, InFlight: st.InFlight, Spent: spent, Budget: state.Budget, Concurrency: state.Concurrency, Draining: state.Draining != nil}
	by := state.Paused
	switch {
	case by != nil:
		a.State = control.Paused
	case state.Draining != nil:
		by, a.State = state.Draining, control.Draining
	}
	if by != nil {
		a.By, a.At = by.By, &by.At
	}
	return a
}
