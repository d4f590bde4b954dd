package cli

import (
	"context"
	"io"
	"path/filepath"

	"parley/internal/cli/exit"
	"parley/internal/cli/terminal"
	"parley/internal/read/export"
	"parley/internal/run/runfile"
	"parley/journal"
	"parley/world"
)

// formatATIF writes a trajectory of every seat of every episode, for Harbor and what reads its format.
const formatATIF = "atif"

// atif writes the trajectories.
func (c *exportCmd) atif(ctx context.Context, s *State) error {
	switch {
	case c.Out == "":
		return exit.Usagef("--format atif: name the folder to write to with --out")
	case c.Table != "calls":
		return exit.Usagef("--format atif writes trajectories, not a table; leave out --table")
	}
	put := func(name string, write func(io.Writer) error) error {
		out := c.output(filepath.Join(c.Out, name))
		out.Force = true // the folder was empty, or is to be overwritten
		return out.Write(write)
	}
	ready := func(*journal.Begun) error { return c.emptyFolder() }
	return c.wholeRun(ctx, s, ready, func(ctx context.Context, store *runfile.Store, kind world.Kind) (string, error) {
		got, err := export.WriteATIF(ctx, store, kind, c.sizeLimit(), put)
		return terminal.Several(got.Count, "trajectory", "trajectories") + notEnded("; ", got.LeftOut, ""), err
	})
}
