package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"parley/internal/app"
)

// forkCmd continues an episode from one of its turns, with changes.
type forkCmd struct {
	File    string `arg:"" placeholder:"FILE" help:"The run file to fork. It is only read. The run may still be in progress."`
	Episode int    `required:"" placeholder:"N" help:"The episode."`
	Turn    int    `required:"" placeholder:"K" help:"The first turn to play again. parley show lists the numbers."`
	Repeat  int    `default:"1" placeholder:"R" help:"How many episodes to continue from there, each with its own random draws. Default: ${default}."`
	Out     string `placeholder:"NEW" help:"The new run file. Default: next to FILE, named after it, the episode and the turn."`
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
	out := c.Out
	if out == "" {
		ext := filepath.Ext(c.File)
		out = fmt.Sprintf("%s-e%d-t%d%s", strings.TrimSuffix(c.File, ext), c.Episode, c.Turn, ext)
	}
	keys, err := c.gate(s)
	if err != nil {
		return err
	}
	if err := s.recordedCode(ctx, app.Play{File: c.File, Reach: c.recorded()}); err != nil {
		return err
	}
	fork := app.Fork{Kinds: s.Kinds, From: c.File, Episode: c.Episode, Turn: c.Turn, Sets: c.sets(), Repeat: c.Repeat, File: out, Code: s.code(), Tool: Version(), Trust: keys.Gate, Reach: c.recorded()}
	if err := fork.Write(ctx); err != nil {
		return playError(c.File, err)
	}
	return c.play(ctx, s, keys, app.Play{File: out, MustExist: true})
}
