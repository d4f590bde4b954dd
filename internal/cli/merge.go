package cli

import (
	"context"
	"fmt"

	"parley/internal/cli/app"
	"parley/internal/cli/terminal"
)

// mergeCmd writes a run as one file.
type mergeCmd struct {
	File string `arg:"" placeholder:"FILE" help:"The run file. It and its shards are only read. Nothing may play it meanwhile."`
	Out  string `arg:"" placeholder:"OUT" help:"The new run file. It holds the same run: the same entries and the same digest."`
}

// Run writes the file.
func (c *mergeCmd) Run(ctx context.Context, s *State) error {
	ctx, end := untilSignal(ctx, s)
	defer end()
	n, err := app.Merge(ctx, c.File, c.Out)
	if err != nil {
		return playError(c.File, err)
	}
	_, err = fmt.Fprintf(s.Stdout, "%s holds the %s entries of %s.\n", terminal.Safe(c.Out), terminal.Number(n), terminal.Safe(c.File))
	return err
}
