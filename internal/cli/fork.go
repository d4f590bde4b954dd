package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"parley/internal/cli/app"
	"parley/internal/cli/exit"
)

// forkCmd continues an episode from one of its turns, with changes.
type forkCmd struct {
	File    string `arg:"" placeholder:"FILE" help:"The run file to fork. It is only read. The run may still be in progress."`
	Episode int    `required:"" placeholder:"N" help:"The episode."`
	Turn    *int   `placeholder:"K" help:"The first turn to play again. parley show lists the numbers."`
	Phase   string `placeholder:"NAME" help:"Begin with a phase instead, as the world names it: F1902M, \"turn 3\", \"round 2\"."`
	Repeat  int    `default:"1" placeholder:"R" help:"How many episodes to continue from there, each with its own random draws. Default: ${default}."`
	Out     string `placeholder:"NEW" help:"The new run file. Default: next to FILE, named after it, the episode and the turn or phase."`
	playFlags
}

// Run writes the new run file and plays it.
func (c *forkCmd) Run(ctx context.Context, s *State) error {
	if err := c.check(); err != nil {
		return err
	}
	if err := refuseGateway(ctx, c.File); err != nil {
		return err
	}
	if (c.Turn == nil) == (c.Phase == "") {
		return exit.Usagef("a fork begins at a turn or a phase: use --turn K, or --phase NAME")
	}
	out := c.out()
	keys, err := c.gate(s)
	if err != nil {
		return err
	}
	if err := s.recordedCode(ctx, app.Play{File: c.File, Reach: c.recorded()}); err != nil {
		return err
	}
	fork := app.Fork{Kinds: s.Kinds, From: c.File, Episode: c.Episode, Phase: c.Phase, Sets: c.sets(), Repeat: c.Repeat, File: out, Code: s.code(), Tool: Version(), Trust: keys.Gate, Reach: c.recorded()}
	if c.Turn != nil {
		fork.Turn = *c.Turn
	}
	if err := fork.Write(ctx); err != nil {
		return playError(c.File, err)
	}
	return c.play(ctx, s, keys, app.Play{File: out, MustExist: true})
}

// out returns the new run file.
func (c *forkCmd) out() string {
	if c.Out != "" {
		return c.Out
	}
	where := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, c.Phase)
	if c.Turn != nil {
		where = fmt.Sprintf("t%d", *c.Turn)
	}
	ext := filepath.Ext(c.File)
	return fmt.Sprintf("%s-e%d-%s%s", strings.TrimSuffix(c.File, ext), c.Episode, where, ext)
}
