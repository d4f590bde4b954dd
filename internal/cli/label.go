package cli

import (
	"context"
	"errors"
	"fmt"

	"parley/internal/cli/exit"
	"parley/internal/cli/terminal"
	"parley/internal/run/label"
)

// addLabels adds the labels of --labels, in a file beside the run file.
func (c *scoreCmd) addLabels(ctx context.Context, s *State) (err error) {
	ctx, end := untilSignal(ctx, s)
	defer end()
	store, about, err := openRun(ctx, c.File)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	run := about.Begun.Run
	labels, err := label.ReadTable(ctx, c.Labels, run, about.Episodes.Total)
	if err != nil {
		return exit.AsUsage(err)
	}
	set, err := label.Read(ctx, store.Path(), run)
	if err != nil {
		return err
	}
	added := set.New(labels)
	if len(added) > 0 {
		if err := label.Add(store.Path(), added...); err != nil {
			return err
		}
	}
	text := terminal.Several(len(added), "label", "labels") + " added"
	if left := len(labels) - len(added); left > 0 {
		text += ", " + terminal.Number(left) + " were there already"
	}
	_, err = fmt.Fprintf(s.Stdout, "%s: %s\n", terminal.Safe(c.File), text)
	return err
}
