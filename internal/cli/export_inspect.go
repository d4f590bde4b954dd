package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"parley/internal/cli/exit"
	"parley/internal/cli/terminal"
	"parley/internal/read/export"
)

// formatInspect writes the run as one log for Inspect.
const formatInspect = "inspect"

// inspectEnding is the file name ending by which inspect_ai recognizes a log.
const inspectEnding = ".eval"

// isInspect reports whether a log for Inspect is wanted.
func (c *exportCmd) isInspect() bool {
	return c.Format == formatInspect || c.Format == "" && strings.ToLower(filepath.Ext(c.Out)) == inspectEnding
}

// inspect writes the log.
func (c *exportCmd) inspect(ctx context.Context, s *State) (err error) {
	out, isStream := s.Stdout.(*terminal.Stream)
	switch {
	case c.Table != "calls":
		return exit.Usagef("--format inspect writes a log, not a table; leave out --table")
	case c.Out == "" && isStream && out.Width() > 0:
		return exit.Usagef("a log of Inspect cannot be shown on a terminal; name a file that ends in %s with --out", inspectEnding)
	case c.Out != "" && strings.ToLower(filepath.Ext(c.Out)) != inspectEnding:
		return exit.Usagef("--out %s: Inspect only reads a log whose name ends in %s", c.Out, inspectEnding)
	}
	if c.Out != "" {
		if _, err := c.output(c.Out).Check(); err != nil {
			return err
		}
	}
	store, about, err := openRun(ctx, c.File)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	ctx, end := untilSignal(ctx, s)
	defer end()
	if c.Out == "" {
		got, err := export.WriteInspect(ctx, s.Stdout, store, s.kindOf(about.Begun))
		if err == nil && got.LeftOut > 0 {
			fmt.Fprintln(s.Stderr, "parley: "+notEnded(got.LeftOut))
		}
		return pipeEnd(playError(c.File, err))
	}
	var got export.Written
	left := readRest(ctx, s, store, func() error {
		return c.output(c.Out).Write(func(w io.Writer) (err error) {
			got, err = export.WriteInspect(ctx, w, store, s.kindOf(about.Begun))
			return err
		})
	})
	if left != nil && store.Lost() == nil {
		return playError(c.File, left)
	}
	more := ""
	if got.LeftOut > 0 {
		more = "; " + notEnded(got.LeftOut)
	}
	_, err = fmt.Fprintf(s.Stdout, "wrote %s: %s%s\n", c.Out, terminal.Several(got.Samples, "sample", "samples"), more)
	return cmp.Or(err, left)
}

// notEnded explains why a log has fewer samples than the run has episodes.
func notEnded(n int) string {
	if n == 1 {
		return "1 episode that has not ended is left out"
	}
	return terminal.Number(n) + " episodes that have not ended are left out"
}
