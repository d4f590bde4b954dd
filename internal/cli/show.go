package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"parley/internal/cli/exit"
	"parley/internal/cli/terminal"
	"parley/internal/run/runfile"
)

// showCmd shows a run file: its episodes, a transcript, or a call.
type showCmd struct {
	File    string `arg:"" placeholder:"FILE" help:"The run file. The run may still be in progress."`
	Episode *int   `placeholder:"N" help:"Show the transcript of this episode."`
	Call    string `placeholder:"TURN:INDEX" help:"Show one call of the episode in full, by its name in the transcript: 3:0, or 4.2/0:1 in a strand."`
	Failed  bool   `help:"Only failed episodes; with --episode, only failed calls."`
	Cell    string `placeholder:"TEXT" help:"Only episodes whose cell contains this text."`
	Seat    string `placeholder:"SEAT" help:"With --episode: only this seat."`
	Story   bool   `help:"With --episode: show the episode as its kind describes it, instead of calls and notes."`
	Board   string `placeholder:"PHASE" help:"With --episode: print the picture of a phase as SVG, if the kind draws pictures: F1902M, or last."`
	From    *int   `placeholder:"N" help:"The first episode to list. Default: 0."`
	Limit   *int   `placeholder:"N" help:"Maximum number of episodes to list; 0 lists all. Default: 50."`
	JSON    bool   `name:"json" help:"Print JSON."`
	summaryFlags
}

// Run prints the part of the run that the flags ask for.
func (c *showCmd) Run(ctx context.Context, s *State) (err error) {
	if err := c.check(); err != nil {
		return err
	}
	if c.Summary != "" {
		if err := c.write(ctx, s, c.File, *c.Episode); err != nil {
			return err
		}
	}
	ctx, end := untilSignal(ctx, s)
	defer end()
	store, about, err := openRun(ctx, c.File)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	v := &showReader{Store: store, About: about, File: c.File, Kind: s.kindOf(about.Begun), Tell: s.tell}
	err = c.what(ctx, s, v)
	if errors.Is(err, runfile.ErrDamaged) && store.Lost() == nil {
		switch salvaging := store.Salvage(ctx); {
		case salvaging != nil:
			err = salvaging
		case c.Episode == nil || !store.Lost().Has(*c.Episode):
			err = c.what(ctx, s, v)
		}
	}
	if err == nil {
		err = leftOut(s, store)
	}
	return pipeEnd(playError(c.File, err))
}

// what prints the part that the flags ask for.
func (c *showCmd) what(ctx context.Context, s *State, v *showReader) error {
	switch {
	case c.Call != "":
		r, err := v.Call(ctx, *c.Episode, c.Call)
		if err != nil {
			return err
		}
		return c.show(s, r, r.PrintWhole)
	case c.Story:
		story, err := v.Story(ctx, *c.Episode)
		if err != nil {
			return err
		}
		return c.show(s, story, story.Print)
	case c.Board != "":
		svg, err := v.Board(ctx, *c.Episode, c.Board)
		if err != nil {
			return err
		}
		_, err = io.WriteString(s.Stdout, svg)
		return err
	case c.Episode != nil:
		t, err := v.Said(ctx, *c.Episode, c.Seat, c.Failed)
		if err != nil {
			return err
		}
		return c.show(s, t, t.Print)
	default:
		return c.list(ctx, s, v)
	}
}

// check refuses flags that do not work together.
func (c *showCmd) check() error {
	switch {
	case c.Call != "" && c.Episode == nil:
		return exit.Usagef("--call needs --episode")
	case c.Seat != "" && c.Episode == nil:
		return exit.Usagef("--seat needs --episode")
	case c.Story && (c.Episode == nil || c.Call != "" || c.Failed || c.Seat != ""):
		return exit.Usagef("--story shows a whole episode: it needs --episode and does not go with --call, --failed or --seat")
	case c.Summary != "" && !c.Story:
		return exit.Usagef("--summary adds to a story: it needs --episode and --story")
	case c.Summary == "" && (c.Budget != nil || len(c.Trust) > 0):
		return exit.Usagef("--budget and --trust are for --summary, which asks a model")
	case c.Board != "" && (c.Episode == nil || c.Call != "" || c.Failed || c.Seat != "" || c.Story):
		return exit.Usagef("--board needs --episode and does not go with other flags")
	case c.Call != "" && (c.Failed || c.Seat != ""):
		return exit.Usagef("--call shows one call; leave out --failed and --seat")
	case c.Episode != nil && (c.Cell != "" || c.From != nil || c.Limit != nil):
		return exit.Usagef("--cell, --from and --limit choose among episodes; leave them out with --episode")
	case c.From != nil && *c.From < 0 || c.Limit != nil && *c.Limit < 0:
		return exit.Usagef("--from and --limit must not be negative")
	default:
		return nil
	}
}

// show prints v as JSON, or with print. Both are safe for a terminal: JSON keeps its meaning with control
// characters written as \u001b.
func (c *showCmd) show(s *State, v any, print func(*terminal.Page)) error {
	if c.JSON {
		b, err := terminal.Marshal(v)
		if err != nil {
			return fmt.Errorf("show: %w", err)
		}
		_, err = fmt.Fprintln(s.Stdout, terminal.Safe(string(b)))
		return err
	}
	p := terminal.NewPage(s.Stdout)
	print(p)
	return p.Flush()
}

func (c *showCmd) list(ctx context.Context, s *State, v *showReader) error {
	want := runfile.Listing{Limit: 50, Failed: c.Failed, Cell: c.Cell}
	if c.From != nil {
		want.From = *c.From
	}
	if c.Limit != nil {
		want.Limit = *c.Limit
	}
	run, err := v.Run(ctx, want)
	if err != nil {
		return err
	}
	if n := run.Episodes.Total; want.From > 0 && want.From >= n {
		return exit.Usagef("--from %d: %s has %s episodes, from 0 on", want.From, c.File, terminal.Number(n))
	}
	return c.show(s, run, run.Print)
}
