package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"parley/internal/cli/app"
	"parley/internal/cli/exit"
	"parley/internal/cli/terminal"
	"parley/internal/kit/files"
	"parley/internal/run/control"
	"parley/internal/run/results"
	"parley/internal/run/seat"
	"parley/journal"
)

// ctlCmd steers a run that another process plays.
type ctlCmd struct {
	File    string        `arg:"" help:"The run file." placeholder:"FILE"`
	Verb    string        `arg:"" enum:"pause,resume,drain,stop,set,wait" placeholder:"VERB" help:"pause: send no calls until resume. drain: play the episodes that have begun, and begin no more. stop: send no more calls, as Ctrl-C does. set: change the budget or the concurrency. wait: wait until no process plays the run, and end with its exit code."`
	Sets    []string      `arg:"" optional:"" name:"sets" placeholder:"NAME=VALUE" help:"With set: budget=USD, concurrency=N, or both."`
	Timeout time.Duration `placeholder:"DURATION" help:"How long to wait for the process. Default: 10s; with wait, no limit."`
	JSON    bool          `help:"Print the answer as one JSON object."`
}

// Run sends the request and prints the answer.
func (c *ctlCmd) Run(ctx context.Context, s *State) error {
	ctx, end := untilSignal(ctx, s)
	defer end()
	if c.Verb == "wait" {
		return c.wait(ctx, s)
	}
	timeout := cmp.Or(c.Timeout, 10*time.Second)
	f, err := files.Open(c.File)
	if err != nil {
		return exit.AsUsage(err)
	}
	_ = f.Close() // only its name is needed
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("the process did not answer within %v", timeout))
	defer cancel()
	a, err := control.Steer(ctx, c.File, control.SteerRequest{Verb: journal.SteerVerb(c.Verb), By: "ctl", Sets: c.Sets})
	if err != nil {
		return ctlError(ctx, c.File, err)
	}
	if !c.JSON {
		_, err = fmt.Fprintf(s.Stdout, "%s: %s\n", c.File, a.Text())
		return err
	}
	return terminal.PrintJSON(s.Stdout, a)
}

// ctlError says why a run was not steered, and what to do.
func ctlError(ctx context.Context, file string, err error) error {
	if errors.Is(err, control.ErrNotPlayed) {
		w, bad := runEnd(ctx, file)
		switch {
		case bad != nil:
			return bad
		case w.State.Complete():
			return exit.Usagef("%s: %w: it is complete", file, control.ErrNotPlayed)
		}
		return exit.Usagef("%s: %w (%s): resume it with %s", file, control.ErrNotPlayed, w.State, commandOf([]string{"run", file}))
	}
	if _, refused := errors.AsType[*control.Error](err); refused || errors.Is(err, control.ErrOtherUser) {
		return exit.Usagef("%s: %w", file, err)
	}
	return fmt.Errorf("%s: %w", file, err)
}

// serveControl takes requests from other processes while a run is played, until end is called.
func serveControl(ctx context.Context, s *State, o *app.Opened, g *exit.Gate, stop context.CancelCauseFunc) (end func()) {
	if o.Steering == nil {
		return func() {}
	}
	handlers := map[string]control.Handler{control.SteerVerb: steerHandler(s, o, g, stop)}
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

// steerHandler carries out the requests of parley ctl and of pages. stop ends the run as a signal does.
func steerHandler(s *State, o *app.Opened, g *exit.Gate, stop context.CancelCauseFunc) control.Handler {
	return func(ctx context.Context, args json.RawMessage) (any, error) {
		var r control.SteerRequest
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
		a := steerAnswer(state, o)
		if g.Closed() {
			a.State = results.StateStopping
		}
		s.say(r.By+": "+a.Text(), maxMessage)
		return a, nil
	}
}

// The limits of a request.
const (
	maxBy   = 100
	maxSets = 10
)

func steerAnswer(state control.SteerState, o *app.Opened) control.SteerAnswer {
	st := o.App.Stats()
	a := control.SteerAnswer{State: results.StatePlaying, InFlight: st.InFlight, Sums: o.App.Budget().Sums(), Concurrency: state.Limits.Concurrency, Draining: state.Draining != nil}
	by := state.Paused
	switch {
	case by != nil:
		a.State = results.StatePaused
	case state.Draining != nil:
		by, a.State = state.Draining, results.StateDraining
	}
	if by != nil {
		a.By, a.At = by.By, &by.At
	}
	return a
}
