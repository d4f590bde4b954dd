package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"parley/internal/ask/dispatch/budget"
	"parley/internal/cli/exit"
	"parley/internal/cli/terminal"
	"parley/internal/run/cluster"
	"parley/internal/run/cluster/hub"
)

// clusterCmd shows what a hub's runs and workers do, and makes tokens.
type clusterCmd struct {
	Cluster     string `required:"" placeholder:"URL" help:"The hub, such as tls://host:4222, or nats://127.0.0.1:4222 on this machine."`
	JSON        bool   `help:"Print one JSON object."`
	WorkerToken string `placeholder:"RUN" help:"Print a token for workers of this run only, and nothing else."`
	hubFlags
}

// clusterView is what clusterCmd prints.
type clusterView struct {
	Runs    []hub.Beating `json:"runs"`
	Workers []hub.Working `json:"workers"`
	// Status says how each run is divided, for runs that answer.
	Status []cluster.Status `json:"status"`
	// Left has the runs that the hub has a log of, and no coordinator: they were killed, or failed.
	Left []string `json:"left,omitempty"`
}

// Run listens for a moment and prints what it received.
func (c *clusterCmd) Run(ctx context.Context, s *State) error {
	token, err := c.token(s)
	if err != nil {
		return err
	}
	if c.WorkerToken != "" {
		if token == "" || hub.RunOf(token) != "" {
			return exit.Usagef("--worker-token: the token of the hub is needed: set PARLEY_CLUSTER_TOKEN, or name a file with --token-file")
		}
		if !hub.IsRun(c.WorkerToken) {
			return exit.Usagef("--worker-token %s: want the name of a run, which has only letters and digits; parley cluster shows them", c.WorkerToken)
		}
		_, err := fmt.Fprintln(s.Stdout, hub.WorkerToken(token, c.WorkerToken))
		return err
	}
	ctx, end := untilSignal(ctx, s)
	defer end()
	nc, err := c.connectAndWait(ctx, c.Cluster, token, s.tell)
	if err != nil {
		return err
	}
	defer nc.Close()
	v, err := listenToCluster(ctx, nc.Conn, hub.RunOf(token))
	if err != nil {
		return err
	}
	if c.JSON {
		return terminal.PrintJSON(s.Stdout, v)
	}
	for _, b := range v.Runs {
		state := "playing"
		switch {
		case b.Draining:
			state = "stopping"
		case b.Paused:
			state = "paused"
		}
		fmt.Fprintf(s.Stdout, "run %s  %s  %d episodes ended here  %d lots open, %d of them waiting\n", b.Run, state, b.Episodes, b.Open, b.Waiting)
	}
	for _, st := range v.Status {
		printStatus(s.Stdout, st, v.Workers)
	}
	for _, run := range v.Left {
		fmt.Fprintf(s.Stdout, "run %s  without a coordinator: resume it with --cluster\n", terminal.Safe(run))
	}
	for _, w := range v.Workers {
		waits := append([]string{whyIdle(w)}, w.Waits[:min(len(w.Waits), 8)]...)
		fmt.Fprintf(s.Stdout, "worker %d on %s  run %s  %d lots %s\n", w.Process, terminal.Safe(w.Host), w.Run, w.Lots, terminal.Quoted(strings.TrimLeft(strings.Join(waits, "; "), "; ")))
	}
	if len(v.Runs)+len(v.Workers)+len(v.Left) == 0 {
		fmt.Fprintln(s.Stdout, "nobody plays")
	}
	return nil
}

// printStatus prints how a run is divided.
func printStatus(w io.Writer, st cluster.Status, workers []hub.Working) {
	fmt.Fprintf(w, "run %s  lots: %d waiting, %d played, %d done  the run file is %d messages behind\n", st.Run, st.Lots.Waiting, st.Lots.Leased, st.Lots.Done, st.Lag)
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
		for _, worker := range workers {
			if share, ok := a.Shares[worker.Session]; ok && worker.Run == st.Run {
				parts = append(parts, fmt.Sprintf("worker %d has %.0f%%", worker.Process, 100*share))
			}
		}
		fmt.Fprintf(w, "run %s  account %s: %d calls wait, %s\n", st.Run, terminal.Safe(strings.TrimSpace(name)), a.Waiting, strings.Join(parts, ", "))
	}
}

// listenTime is how long to listen: beats and reports come every second.
const listenTime = 3 * hub.BeatInterval / 2

// listenToCluster listens to what runs and workers say: only those of one run, unless that is "".
func listenToCluster(ctx context.Context, nc *nats.Conn, only string) (v clusterView, err error) {
	which := cmp.Or(only, "*")
	var mu sync.Mutex
	runs, workers := map[string]hub.Beating{}, map[string]hub.Working{}
	subs := map[string]func(data []byte){
		hub.BeatSubject(which): func(data []byte) {
			var b hub.Beating
			if json.Unmarshal(data, &b) == nil && !b.Ended {
				runs[b.Run] = b
			}
		},
		hub.StatsSubject(which): func(data []byte) {
			var w hub.Working
			if json.Unmarshal(data, &w) == nil && !w.Leaves {
				workers[w.Session+w.Run] = w
			}
		},
	}
	for name, handle := range subs {
		_, err := nc.Subscribe(name, func(m *nats.Msg) {
			mu.Lock()
			defer mu.Unlock()
			handle(m.Data)
		})
		if err != nil {
			return v, fmt.Errorf("cluster: %w", err)
		}
	}
	select {
	case <-ctx.Done():
		return v, context.Cause(ctx)
	case <-time.After(listenTime):
	}
	mu.Lock()
	defer mu.Unlock()
	v = clusterView{Runs: []hub.Beating{}, Workers: []hub.Working{}, Status: []cluster.Status{}} // as JSON, a list is never null
	for _, key := range slices.Sorted(maps.Keys(runs)) {
		v.Runs = append(v.Runs, runs[key])
		var st cluster.Status
		if answer, err := nc.Request(hub.StatusSubject(key), nil, hub.BeatInterval); err == nil && json.Unmarshal(answer.Data, &st) == nil && st.Run == key {
			v.Status = append(v.Status, st)
		}
	}
	if only == "" { // the token of one run does not show others
		logs, _ := cluster.Logs(ctx, nc)
		for _, run := range logs {
			if _, played := runs[run]; !played {
				v.Left = append(v.Left, run)
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(workers)) {
		v.Workers = append(v.Workers, workers[key])
	}
	return v, nil
}

// whyIdle says why a worker does not play; "" if it does.
func whyIdle(w hub.Working) string {
	if w.HubFull {
		return "it waits: the hub is full"
	}
	return w.Refused
}
