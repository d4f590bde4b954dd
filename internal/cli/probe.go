package cli

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"parley/internal/ask/probe"
	"parley/internal/ask/provider"
	"parley/internal/cli/exit"
	"parley/internal/cli/terminal"
)

// probeTime is how long a server may take for each question of a test.
const probeTime = 30 * time.Second

// probe tests the server of --probe and prints the result.
func (c *modelsCmd) probe(ctx context.Context, s *State) error {
	switch {
	case c.Timeout == 0:
		c.Timeout = probeTime
	case c.Timeout < 0:
		return exit.Usagef("--timeout must be longer than 0")
	}
	account := provider.Provider{Name: probe.Name, Dialect: "openai", BaseURL: c.Probe, KeyEnv: c.KeyEnv}
	if err := account.Validate(); err != nil {
		return exit.AsUsage(err)
	}
	if err := needKey(account, c.KeyEnv != "", s.Env); err != nil {
		return err
	}
	ctx, end := untilSignal(ctx, s)
	defer end()
	report, err := probe.Run(ctx, probe.Config{BaseURL: c.Probe, KeyEnv: c.KeyEnv, Model: c.Model, Timeout: c.Timeout})
	if stopped := context.Cause(ctx); stopped != nil {
		return stopped
	}
	if err != nil {
		return &exit.Error{Code: exit.Failed, Err: err}
	}
	if err := c.printProbe(s.Stdout, report); err != nil {
		return err
	}
	if report.Provider == nil {
		return exit.Silent(exit.Failed)
	}
	return nil
}

func (c *modelsCmd) printProbe(w io.Writer, r *probe.Report) error {
	if c.JSON {
		return terminal.PrintJSON(w, r)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "server\t%s\t%s\n", r.BaseURL, r.Server)
	fmt.Fprintf(t, "model\t%s\n", r.Model)
	for _, f := range r.Findings {
		fmt.Fprintf(t, "%s\t%s\t%s\n", f.Feature, f.Verdict, f.Detail)
	}
	if r.Provider == nil {
		fmt.Fprint(t, "\nThe server answers in none of the formats that parley supports. Check the address and the name of the model.\n")
		return t.Flush()
	}
	fmt.Fprintf(t, "\nFor a plan:\n\n%s", r.Entry)
	return t.Flush()
}
