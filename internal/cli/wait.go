package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"parley/internal/cli/exit"
	"parley/internal/cli/terminal"
	"parley/internal/run/control"
	"parley/internal/run/results"
	"parley/internal/run/runfile"
	"parley/llm"
)

// waitResult is how a run ended.
type waitResult struct {
	File string `json:"file"`
	results.Status
	Episodes int       `json:"episodes"`
	Ended    int       `json:"ended"` // the failed ones included
	Failed   int       `json:"failed"`
	Cost     llm.Money `json:"cost_usd"`
	Code     int       `json:"exit_code"`
}

// waitEvery is how often runs are looked at.
const waitEvery = 200 * time.Millisecond

// wait waits until no process plays the run, prints how it ended, and returns the exit code of the run.
func (c *ctlCmd) wait(ctx context.Context, s *State) error {
	if c.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, c.Timeout, &exit.Error{Code: exit.Failed, Err: fmt.Errorf("still played after %v", c.Timeout)})
		defer cancel()
	}
	w, err := waitFor(ctx, c.File)
	if err != nil {
		return err
	}
	if err := c.printEnd(s, w); err != nil {
		return err
	}
	return exit.Silent(w.Code)
}

// waitFor waits until no process plays a run, and returns how it ended.
func waitFor(ctx context.Context, file string) (*waitResult, error) {
	tick := time.NewTicker(waitEvery)
	defer tick.Stop()
	for {
		// A process takes requests until it has said how the run ended.
		if !runfile.Played(file) && !control.Played(ctx, file) && ctx.Err() == nil {
			return runEnd(ctx, file)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			cause, ok := errors.AsType[*exit.Error](context.Cause(ctx))
			if !ok {
				return nil, context.Cause(ctx)
			}
			return nil, &exit.Error{Code: cause.Code, Err: fmt.Errorf("%s: %w", file, cause.Err)}
		}
	}
}

// runEnd reads how a run ended.
func runEnd(ctx context.Context, file string) (_ *waitResult, err error) {
	store, err := runfile.OpenRead(file)
	if err != nil {
		return nil, exit.AsUsage(playError(file, err))
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	o, err := store.Outline(ctx)
	if err != nil {
		return nil, playError(file, err)
	}
	if o.Begun == nil {
		return nil, exit.Usagef("%s holds no run yet: play a plan into it first", file)
	}
	return &waitResult{
		File: file, Status: results.StatusOf(o, false), Episodes: o.Episodes.Total, Ended: o.Episodes.Done(), Failed: o.Episodes.Failed, Cost: o.Spent,
		Code: playCode(o.Last.State, o.Last.Reason, o.Episodes.Failed),
	}, nil
}

func (c *ctlCmd) printEnd(s *State, w *waitResult) error {
	if c.JSON {
		return terminal.PrintJSON(s.Stdout, w)
	}
	text := fmt.Sprintf("%s: %s: %s of %s ended", w.File, w.State, terminal.Number(w.Ended), terminal.Several(w.Episodes, "episode", "episodes"))
	if w.Failed > 0 {
		text += fmt.Sprintf(", %s failed", terminal.Number(w.Failed))
	}
	text += fmt.Sprintf(", %v", w.Cost)
	if w.Reason != "" {
		text += ": " + terminal.Safe(terminal.OneLine(w.Reason))
	}
	_, err := fmt.Fprintln(s.Stdout, text)
	return err
}
