package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync/atomic"

	"parley/internal/cli/exit"
	"parley/internal/kit/auth"
	"parley/internal/run/cluster"
	"parley/internal/run/engine"
	"parley/internal/serve/telemetry"
)

// metricsFlags are the flags of commands that Prometheus can watch.
type metricsFlags struct {
	Metrics       string `placeholder:"HOST:PORT" help:"Serve metrics for Prometheus at this address, such as 127.0.0.1:9100, under /metrics."`
	MetricsKeyEnv string `placeholder:"NAME" help:"Environment variable with the keys for --metrics, separated by commas. Without it, only this machine is served."`
}

// metricsServer serves metrics. A nil one does nothing.
type metricsServer struct {
	ln   net.Listener
	keys []string
	end  func()
}

// listen listens at the address of --metrics. It returns nil without the flag.
func (f *metricsFlags) listen(ctx context.Context, s *State) (*metricsServer, error) {
	if f.Metrics == "" {
		return nil, nil
	}
	keys, err := auth.KeysFrom(s.Env, "--metrics-key-env", f.MetricsKeyEnv)
	if err != nil {
		return nil, exit.AsUsage(err)
	}
	ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", f.Metrics)
	if err != nil {
		return nil, exit.Usagef("--metrics: %w", err)
	}
	if at, ok := ln.Addr().(*net.TCPAddr); (!ok || !at.IP.IsLoopback()) && len(keys) == 0 {
		return nil, errors.Join(exit.Usagef("--metrics %s would serve other machines without a key: set one with --metrics-key-env", f.Metrics), ln.Close())
	}
	return &metricsServer{ln: ln, keys: keys}, nil
}

// serve begins to serve a page.
func (m *metricsServer) serve(ctx context.Context, s *State, page func() *telemetry.Page) {
	if m == nil {
		return
	}
	fmt.Fprintf(s.err, "parley: metrics at http://%s/metrics\n", m.ln.Addr())
	m.end = telemetry.Serve(ctx, m.ln, m.keys, page)
}

// close stops serving.
func (m *metricsServer) close() {
	switch {
	case m == nil:
	case m.end != nil:
		m.end()
	default:
		_ = m.ln.Close() // nobody was served
	}
}

// divided is how a run is divided among workers, as soon as it is.
type divided struct {
	status atomic.Pointer[func() cluster.Status]
}

// divides returns how remote divides a run; nil if it does not.
func divides(remote engine.Remote) *divided {
	c, ok := remote.(*cluster.Coordinator)
	if !ok {
		return nil
	}
	d := &divided{}
	c.Began = func(status func() cluster.Status) { d.status.Store(&status) }
	return d
}

// add adds to a page how the run is divided.
func (d *divided) add(p *telemetry.Page) {
	if d == nil {
		return
	}
	status := d.status.Load()
	if status == nil {
		return
	}
	st := (*status)()
	gauge := func(name, help string, v float64, labels ...string) {
		p.Add(telemetry.Gauge, telemetry.Prefix+name, help, v, labels...)
	}
	const lots = "Lots of episodes by state. If lots wait, more workers would help."
	gauge("lots", lots, float64(st.Lots.Waiting), "state", "waiting")
	gauge("lots", lots, float64(st.Lots.Leased), "state", "leased")
	gauge("lots", lots, float64(st.Lots.Done), "state", "done")
	gauge("workers", "Workers that play the run.", float64(st.Workers))
	gauge("log_lag_messages", "Messages of workers that are not in the run file yet.", float64(st.Lag))
	for _, name := range slices.Sorted(maps.Keys(st.Accounts)) {
		a := st.Accounts[name]
		for _, worker := range slices.Sorted(maps.Keys(a.Shares)) {
			gauge("share", "The part of an account's limits that a worker may use, from 0 to 1.", a.Shares[worker], "account", name, "worker", worker)
		}
	}
	if m := st.Money; m != nil {
		gauge("allotted_dollars", "What workers may spend.", m.AllAllotted().Dollars())
		gauge("at_risk_dollars", "What lost workers may have spent.", m.AtRisk.Dollars())
	}
}
