package dispatch

import (
	"context"
	"fmt"

	"parley/internal/ask/dispatch/replica"
	"parley/internal/ask/provider"
	"parley/llm"
)

// reach is the layer that holds calls back while their provider cannot be reached: see package
// outage.
type reach struct {
	next layer
	*Guard
}

// ask asks once the provider can be reached.
func (r *reach) ask(ctx context.Context, c *call) (*llm.Response, error) {
	return r.Do(ctx, c.hasty, func() (*llm.Response, error) { return r.next.ask(ctx, c) })
}

// waitOut makes the calls of a lane wait for a provider that cannot be reached, if c demands it.
func (l *lane) waitOut(in Lane, c Config) {
	if c.Retry.Unreachable <= 0 || in.Provider.Dialect == "sim" {
		return
	}
	config := OutageConfig{
		Provider: in.Provider.Name, URL: addresses(in.Provider), Limit: c.Retry.Unreachable,
		Alive: aliveOf(in), Report: c.Outages,
	}
	if l.set == nil { // a set of replicas recalls calls itself
		config.Recall, config.Arrived = l.endpoints[0].recall, l.endpoints[0].arrived
	}
	l.reach = &reach{next: l.live, Guard: newOutage(config)}
	l.live = l.reach
}

// addresses describes where a provider is.
func addresses(p provider.Provider) string {
	if n := len(p.BaseURLs); n > 1 {
		return fmt.Sprintf("%s and %d more", p.BaseURLs[0], n-1)
	}
	return p.Servers()[0].BaseURL
}

// aliveOf returns a function that checks, without a call, whether a server of a lane is there. It
// returns nil where only calls can find out.
func aliveOf(in Lane) func(ctx context.Context) error {
	var servers []replica.Pinger
	for _, m := range in.Replicas {
		if m.Server != nil {
			servers = append(servers, m.Server)
		}
	}
	if s, ok := in.Model.(replica.Pinger); ok && len(in.Replicas) == 0 {
		servers = append(servers, s)
	}
	if len(servers) == 0 {
		return nil
	}
	return func(ctx context.Context) (err error) {
		for _, s := range servers {
			if err = s.Alive(ctx); err == nil {
				return nil
			}
		}
		return err
	}
}
