package cli

import (
	"context"
	"errors"
	"fmt"
	"net"

	"parley/internal/cli/exit"
	"parley/internal/serve/auth"
	"parley/internal/serve/metric"
	"parley/internal/serve/monitor"
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
func (m *metricsServer) serve(ctx context.Context, s *State, page func() *metric.Page) {
	if m == nil {
		return
	}
	fmt.Fprintf(s.err, "parley: metrics at http://%s/metrics\n", m.ln.Addr())
	m.end = monitor.Serve(ctx, m.ln, m.keys, page)
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
