package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"parley/internal/cli/exit"
	"parley/internal/cli/terminal"
	"parley/internal/kit/files"
	"parley/internal/run/control"
	"parley/journal"
)

// ctlCmd steers a run that another process plays.
type ctlCmd struct {
	File    string        `arg:"" help:"The run file." placeholder:"FILE"`
	Verb    string        `arg:"" enum:"pause,resume,drain,stop,set" placeholder:"VERB" help:"pause: send no calls until resume. drain: play the episodes that have begun, and begin no more. stop: send no more calls, as Ctrl-C does. set: change the budget or the concurrency."`
	Sets    []string      `arg:"" optional:"" name:"sets" placeholder:"NAME=VALUE" help:"With set: budget=USD, concurrency=N, or both."`
	Timeout time.Duration `default:"10s" placeholder:"DURATION" help:"How long to wait for the process. Default: ${default}."`
	JSON    bool          `help:"Print the answer as one JSON object."`
}

// Run sends the request and prints the answer.
func (c *ctlCmd) Run(ctx context.Context, s *State) error {
	ctx, end := untilSignal(ctx, s)
	defer end()
	f, err := files.Open(c.File)
	if err != nil {
		return exit.AsUsage(err)
	}
	_ = f.Close() // only its name is needed
	ctx, cancel := context.WithTimeoutCause(ctx, c.Timeout, fmt.Errorf("the process did not answer within %v", c.Timeout))
	defer cancel()
	a, err := control.Steer(ctx, c.File, control.Request{Verb: journal.SteerVerb(c.Verb), By: "ctl", Sets: c.Sets})
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
		w, bad := endOf(ctx, file)
		switch {
		case bad != nil:
			return bad
		case w.State == string(journal.Complete):
			return exit.Usagef("%s: %w: it is complete", file, control.ErrNotPlayed)
		}
		return exit.Usagef("%s: %w (%s): resume it with %s", file, control.ErrNotPlayed, w.State, commandOf([]string{"resume", file}))
	}
	if refused, ok := errors.AsType[*control.Error](err); ok {
		return exit.Usagef("%s: %w", file, refused)
	}
	return fmt.Errorf("%s: %w", file, err)
}
