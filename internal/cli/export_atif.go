package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"parley/internal/cli/exit"
	"parley/internal/cli/terminal"
	"parley/internal/read/export"
)

// formatATIF writes a trajectory of every seat of every episode, for Harbor and what reads its format.
const formatATIF = "atif"

// atif writes the trajectories.
func (c *exportCmd) atif(ctx context.Context, s *State) (err error) {
	switch {
	case c.Out == "":
		return exit.Usagef("--format atif: name the folder to write to with --out")
	case c.Table != "calls":
		return exit.Usagef("--format atif writes trajectories, not a table; leave out --table")
	}
	store, about, err := openRun(ctx, c.File)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if err := c.emptyFolder(); err != nil {
		return err
	}
	ctx, end := untilSignal(ctx, s)
	defer end()
	var got export.ATIFWritten
	put := func(name string, write func(io.Writer) error) error {
		out := c.output(filepath.Join(c.Out, name))
		out.Force = true // the folder was empty, or is to be overwritten
		return out.Write(write)
	}
	left := readUndamaged(ctx, s, store, func() (err error) {
		got, err = export.WriteATIF(ctx, store, s.kindOf(about.Begun), c.sizeLimit(), put)
		return err
	})
	if left != nil && store.Lost() == nil {
		return playError(c.File, moreWith(left))
	}
	more := ""
	if got.LeftOut > 0 {
		more = "; " + notEnded(got.LeftOut)
	}
	_, err = fmt.Fprintf(s.Stdout, "wrote %s: %s%s\n", c.Out, terminal.Several(got.Files, "trajectory", "trajectories"), more)
	return cmp.Or(err, left)
}
