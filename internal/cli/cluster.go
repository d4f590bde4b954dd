package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"parley/internal/ask/dispatch/budget"
	"parley/internal/cli/exit"
	"parley/internal/cli/terminal"
	"parley/internal/run/cluster"
	"parley/internal/run/cluster/hub"
)

// clusterCmd shows what a hub's runs and workers do, makes tokens, and drains workers.
type clusterCmd struct {
	Verb        string `arg:"" optional:"" enum:",drain" default:"" placeholder:"VERB" help:"drain: let a worker finish the calls in flight, give its lots back and end. Default: show the runs and workers."`
	Worker      string `arg:"" optional:"" placeholder:"WORKER" help:"With drain: the name of the worker, as parley cluster shows it."`
	Cluster     string `required:"" placeholder:"URL" help:"The hub, such as tls://host:4222, or nats://127.0.0.1:4222 on this machine."`
	JSON        bool   `help:"Print one JSON object."`
	WorkerToken string `placeholder:"RUN" help:"Print a token for workers of this run only, and nothing else."`
	hubFlags
}

// clusterView is what clusterCmd prints.
type clusterView struct {
	// Runs says how each run is divided.
	Runs []cluster.Status `json:"runs"`
	// Left has the runs that the hub has a log of, and no coordinator that answers: they were killed, or failed.
	Left []string `json:"left"`
	// Drained is the worker that has drained. Empty: none was told to.
	Drained string `json:"drained,omitempty"`
}

// Run asks the coordinators and prints what they answer.
func (c *clusterCmd) Run(ctx context.Context, s *State) error {
	token, err := c.token(s)
	if err != nil {
		return err
	}
	if err := c.check(token); err != nil {
		return err
	}
	if c.WorkerToken != "" {
		_, err := fmt.Fprintln(s.Stdout, hub.WorkerToken(token, c.WorkerToken))
		return err
	}
	ctx, end := untilSignal(ctx, s)
	defer end()
	nc, err := c.connectAndWait(ctx, nil, c.Cluster, token, s.tell)
	if err != nil {
		return err
	}
	defer nc.Close()
	v, err := askCluster(ctx, nc.Conn, hub.RunOf(token))
	if err == nil && c.Verb != "" {
		v, err = c.drain(ctx, nc.Conn, v)
	}
	if err != nil {
		return err
	}
	if c.JSON {
		return terminal.PrintJSON(s.Stdout, v)
	}
	v.print(s.Stdout)
	return nil
}

// check refuses what cannot be done with this token.
func (c *clusterCmd) check(token string) error {
	operates := token != "" && hub.RunOf(token) == ""
	switch {
	case c.WorkerToken != "" && !operates:
		return exit.Usagef("--worker-token: the token of the hub is needed: set %s, or name a file with --token-file", tokenEnv)
	case c.WorkerToken != "" && !hub.IsRun(c.WorkerToken):
		return exit.Usagef("--worker-token %s: want the name of a run, which has only letters and digits; parley cluster shows them", c.WorkerToken)
	case c.WorkerToken != "":
		return checkToken(token)
	case c.Verb == "":
		return nil
	case c.Worker == "":
		return exit.Usagef("drain: which worker? parley cluster shows their names")
	case !operates:
		return exit.Usagef("drain: the token of the hub is needed, and not that of a run: set %s, or name a file with --token-file", tokenEnv)
	default:
		return nil
	}
}

// askAgain is how often coordinators are asked whether a worker has drained.
const askAgain = 100 * time.Millisecond

// drain tells a worker to drain, and waits until no run has it any more.
func (c *clusterCmd) drain(ctx context.Context, nc *nats.Conn, v clusterView) (clusterView, error) {
	if !v.has(c.Worker) {
		return v, exit.Usagef("drain %s: no run has a worker of this name; parley cluster shows their names", c.Worker)
	}
	for v.has(c.Worker) {
		if err := hub.Drain(nc, c.Worker); err != nil { // more than once: one may be lost
			return v, fmt.Errorf("cluster: %w", err)
		}
		select {
		case <-ctx.Done():
			return v, context.Cause(ctx)
		case <-time.After(askAgain):
		}
		var err error
		if v, err = askCluster(ctx, nc, ""); err != nil {
			return v, err
		}
	}
	v.Drained = c.Worker
	return v, nil
}

// has reports whether a run has a worker of this name.
func (v *clusterView) has(worker string) bool {
	return slices.ContainsFunc(v.Runs, func(st cluster.Status) bool {
		return slices.ContainsFunc(st.Workers, func(w hub.Working) bool { return w.Worker == worker })
	})
}

// print prints v for people.
func (v *clusterView) print(w io.Writer) {
	if v.Drained != "" {
		fmt.Fprintf(w, "worker %s has drained\n", terminal.Safe(v.Drained))
	}
	for _, st := range v.Runs {
		printStatus(w, st)
	}
	for _, run := range v.Left {
		fmt.Fprintf(w, "run %s  without a coordinator: resume it with --cluster\n", terminal.Safe(run))
	}
	if len(v.Runs)+len(v.Left) == 0 {
		fmt.Fprintln(w, "nobody plays")
	}
}

// maxWaiting is how many lots that wait are listed for people, beside those at which workers died. With --json, all are.
const maxWaiting = 10

// printLots lists the lots of a run that are not done.
func printLots(w io.Writer, st cluster.Status) {
	waiting, more := 0, 0
	for _, lot := range st.Lots.Open {
		who := "waits"
		switch {
		case lot.Waits:
			who = "waits for another lot of worker " + terminal.Safe(lot.Worker)
		case lot.Worker != "":
			who = "worker " + terminal.Safe(lot.Worker)
		case lot.Session != "":
			who = "a worker that says nothing"
		case lot.Deaths > 0: // always listed
		case waiting == maxWaiting:
			more++
			continue
		default:
			waiting++
		}
		fmt.Fprintf(w, "run %s  lot %d–%d  %s  %s%s\n", st.Run, lot.First, lot.Last, who, time.Duration(lot.Age*float64(time.Second)).Round(time.Second), deaths(lot.Deaths))
	}
	if more > 0 {
		fmt.Fprintf(w, "run %s  and %s that wait\n", st.Run, terminal.Several(more, "more lot", "more lots"))
	}
}

func deaths(n int) string {
	if n == 0 {
		return ""
	}
	return "  " + terminal.Several(n, "worker died", "workers died") + " at it"
}

// printStatus prints how a run is divided.
func printStatus(w io.Writer, st cluster.Status) {
	fmt.Fprintf(w, "run %s  %s  %s ended here  lots: %d waiting, %d played, %d done  %s  the run file is %d messages behind\n", st.Run, terminal.Safe(st.State),
		terminal.Several(st.Ended, "episode", "episodes"), st.Lots.Waiting, st.Lots.Leased, st.Lots.Done, terminal.Several(st.Playing(), "worker", "workers"), st.Lag)
	if m := st.Money; m != nil {
		sums := budget.Sums{Spent: m.Spent, AtRisk: m.AtRisk, Aside: m.AllAllotted(), Limit: m.Limit}
		fmt.Fprintf(w, "run %s  budget: %s\n", st.Run, sums.Text())
	}
	for _, name := range slices.Sorted(maps.Keys(st.Accounts)) {
		a := st.Accounts[name]
		var parts []string
		for _, r := range []struct {
			what string
			rate float64
		}{{"requests", a.Rates.Requests}, {"tokens", a.Rates.Tokens}, {"input tokens", a.Rates.Input}, {"output tokens", a.Rates.Output}} {
			if r.rate > 0 {
				parts = append(parts, fmt.Sprintf("%.0f %s a minute", r.rate, r.what))
			}
		}
		for _, worker := range st.Workers {
			if share, ok := a.Shares[worker.Session]; ok {
				parts = append(parts, fmt.Sprintf("worker %s has %.0f%%", terminal.Safe(worker.Worker), 100*share))
			}
		}
		fmt.Fprintf(w, "run %s  account %s: %d calls wait, %s\n", st.Run, terminal.Safe(strings.TrimSpace(name)), a.Waiting, strings.Join(parts, ", "))
	}
	for _, worker := range st.Workers {
		says := []string{terminal.Several(worker.Lots, "lot", "lots")}
		for _, why := range append([]string{worker.Idle()}, worker.Waits[:min(len(worker.Waits), 8)]...) {
			if why != "" {
				says = append(says, why)
			}
		}
		fmt.Fprintf(w, "run %s  worker %s  process %d on %s  %s\n", st.Run, terminal.Safe(worker.Worker), worker.Process, terminal.Safe(worker.Host), terminal.Quoted(strings.Join(says, "; ")))
	}
	printLots(w, st)
}

// askCluster asks the coordinators how their runs are divided: only that of one run, unless it is "".
func askCluster(ctx context.Context, nc *nats.Conn, only string) (v clusterView, err error) {
	v = clusterView{Runs: []cluster.Status{}, Left: []string{}} // as JSON, a list is never null
	runs := []string{only}
	if only == "" { // the token of one run does not show others
		if runs, err = cluster.Logs(ctx, nc); err != nil {
			return v, fmt.Errorf("cluster: %w", err)
		}
		slices.Sort(runs)
	}
	for _, run := range runs {
		st, ok := askStatus(ctx, nc, run)
		switch {
		case ok:
			v.Runs = append(v.Runs, st)
		case ctx.Err() != nil:
			return v, context.Cause(ctx)
		case only == "":
			v.Left = append(v.Left, run)
		}
	}
	return v, nil
}

// askStatus asks a coordinator how its run is divided. It returns false if none answers.
func askStatus(ctx context.Context, nc *nats.Conn, run string) (st cluster.Status, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, 2*hub.BeatInterval)
	defer cancel()
	answer, err := nc.RequestWithContext(ctx, hub.StatusSubject(run), nil)
	if err != nil || json.Unmarshal(answer.Data, &st) != nil {
		return st, false
	}
	return st, st.Run == run
}
