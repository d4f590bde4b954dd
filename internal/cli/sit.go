package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"parley/internal/cli/exit"
	"parley/internal/cli/terminal"
	"parley/internal/run/seat"
)

// sitCmd takes a seat of a run.
type sitCmd struct {
	File string `arg:"" placeholder:"FILE" help:"The run file. Another process plays it."`
	Seat string `arg:"" optional:"" placeholder:"SEAT" help:"The seat to take, or the agent that you are. Default: list the seats of people."`
	JSON bool   `name:"json" help:"For programs: print questions as JSON lines, and read answers as JSON lines."`
}

// Run takes the seat until the run ends, or lists the seats.
func (c *sitCmd) Run(ctx context.Context, s *State) (err error) {
	ctx, end := untilSignal(ctx, s)
	defer end()
	store, about, err := openRun(ctx, c.File)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	places, err := seat.Places(ctx, store, about.Begun)
	if err != nil {
		return playError(c.File, err)
	}
	if len(places) == 0 {
		return exit.Usagef("%s: no person takes part in this run: a plan seats one with an agent `model: human`", c.File)
	}
	if c.Seat == "" {
		return c.list(ctx, s, places)
	}
	var names []string
	for _, p := range places {
		names = append(names, p.Seat)
		if p.Seat == c.Seat || p.Agent == c.Seat {
			names = nil
			break
		}
	}
	if names != nil {
		return exit.Usagef("%s: no person takes the seat %q; want one of %s", c.File, c.Seat, strings.Join(slices.Compact(names), ", "))
	}
	sitter := seatPlayer{File: c.File, Name: c.Seat, Store: store, In: s.Stdin, Out: s.Stdout, JSON: c.JSON}
	return pipeEnd(sitter.Run(ctx))
}

// listedSeat is a seat of a person.
type listedSeat struct {
	Seat  string `json:"seat"`
	Agent string `json:"agent"`
	Open  int    `json:"open_questions"`
}

// list prints the seats of people.
func (c *sitCmd) list(ctx context.Context, s *State, places []seat.Place) error {
	open, err := seat.Read(ctx, c.File)
	if err != nil {
		return err
	}
	all := make([]listedSeat, len(places))
	for i, p := range places {
		all[i] = listedSeat{Seat: p.Seat, Agent: p.Agent}
		for _, q := range open {
			if q.Seat == p.Seat && q.Agent == p.Agent {
				all[i].Open++
			}
		}
	}
	if c.JSON {
		return terminal.PrintJSON(s.Stdout, all)
	}
	t := tabwriter.NewWriter(s.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "seat\tagent\topen questions")
	for _, one := range all {
		fmt.Fprintf(t, "%s\t%s\t%d\n", terminal.Safe(one.Seat), terminal.Safe(one.Agent), one.Open)
	}
	fmt.Fprintf(t, "\nnext:  %s\n", commandOf([]string{"sit", c.File, all[0].Seat}))
	return t.Flush()
}
