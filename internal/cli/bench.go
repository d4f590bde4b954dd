package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"parley/internal/ask/sim"
	"parley/internal/cli/app"
	"parley/internal/cli/exit"
	"parley/internal/cli/terminal"
	"parley/internal/run/estimate"
	"parley/internal/run/planfile"
)

// benchFlags are the flags of check that measure a plan.
type benchFlags struct {
	Bench       bool      `group:"bench" help:"Play the plan on the simulated provider in several ways, and compare how long they take."`
	Delay       sim.Delay `group:"bench" default:"lognormal:250ms,0.5" placeholder:"DELAY" help:"How long a call takes: 1s, 200ms..2s, lognormal:MEDIAN,SIGMA or exp:MEAN. Default: ${default}."`
	Concurrency int       `group:"bench" default:"64" placeholder:"N" help:"Maximum number of calls in flight. Default: ${default}."`
	OneByOne    int       `group:"bench" name:"one-by-one" default:"4" placeholder:"N" help:"How many episodes to also play one call at a time, for comparison. Default: ${default}."`
}

// bench plays the plan on the simulated provider. It calls no other provider and costs nothing.
func (c *checkCmd) bench(ctx context.Context, s *State, plan *planfile.Plan) error {
	if c.Concurrency < 1 || c.OneByOne < 1 {
		return exit.Usagef("--concurrency and --one-by-one must be 1 or more")
	}
	ctx, end := untilSignal(ctx, s)
	defer end()
	res, err := app.Bench(ctx, estimate.Bench{Plan: plan, Latency: c.Delay, Calls: c.Concurrency, OneByOne: c.OneByOne})
	switch {
	case ctx.Err() != nil:
		return exit.Silent(exit.Interrupted)
	case err != nil:
		return exit.Usagef("%s: %w", c.Plan, err)
	case c.JSON:
		return terminal.PrintJSON(s.Stdout, res)
	}
	var b strings.Builder
	printBench(&b, res)
	if _, err := io.WriteString(s.Stdout, b.String()); err != nil || res.Same {
		return err
	}
	return fmt.Errorf("%s: the ways of playing gave different outcomes: this is a bug in the kind %s or in Parley", c.Plan, plan.Kind.Name)
}

func printBench(w io.Writer, r *estimate.BenchResult) {
	fmt.Fprintf(w, "%s episodes, %s calls of %s (%.3g s on average), on the simulated provider, at most %s in flight.\n\n",
		terminal.Number(r.Episodes), terminal.Number(r.Calls), r.Latency, r.MeanLatency, terminal.Number(r.Concurrency))
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "WAY\tEPISODES\tCALLS\tSECONDS\tIDEAL\tSECONDS/IDEAL\tAGAINST ONE BY ONE\t")
	for _, way := range r.Ways {
		against := "1"
		if way != r.Ways[0] && way.Episodes == r.Episodes && way.Wall > 0 {
			against = fmt.Sprintf("%.1f times as fast", r.Serial/way.Wall)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%.2f\t%.2f\t%.3f\t%s\t\n", way.Name, terminal.Number(way.Episodes), terminal.Number(way.Calls), way.Wall, way.Ideal, way.Ratio, against)
	}
	_ = t.Flush() // a strings.Builder takes everything
	fmt.Fprintf(w, "\nIdeal is the minimum that these latencies allow with so many calls in flight: a call begins as soon as\n"+
		"its turn allows it and a slot is free. All %s calls one by one take %.1f s at least.\n", terminal.Number(r.Calls), r.Serial)
	switch {
	case r.Same && r.Ways[0].Episodes == r.Episodes:
		fmt.Fprintf(w, "All three gave the same outcomes: digest %s.\n", r.Digest)
	case r.Same:
		fmt.Fprintf(w, "Free pace and waves gave the same outcomes: digest %s.\n", r.Digest)
	}
}
