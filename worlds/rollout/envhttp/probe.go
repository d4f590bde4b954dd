package envhttp

import (
	"context"
	"slices"
	"sync"
	"time"

	"parley/llm"
	"parley/world"
	"parley/worlds/rollout/rules"
)

// probeTime is how long a server may take to answer a probe.
const probeTime = 5 * time.Second

// Probe asks all servers of p at once whether they are there. It changes nothing on them.
func Probe(ctx context.Context, p *rules.Params) []world.Presence {
	hosts, idle, _ := reach(p)
	names := slices.Clip(p.Servers)
	var checks []func(ctx context.Context) error
	for _, h := range hosts {
		checks = append(checks, func(ctx context.Context) error { return h.Check(ctx, func(string) bool { return false }) })
	}
	if p.Tools.MCP != "" {
		tools := NewMCP(p.Tools.MCP)
		names, idle = append(names, p.Tools.MCP), append(idle, tools.Close)
		checks = append(checks, func(ctx context.Context) error {
			s, err := tools.Open(ctx)
			if err == nil {
				s.End(ctx)
			}
			return err
		})
	}
	ctx, cancel := context.WithTimeoutCause(ctx, min(probeTime, seconds(p.Pool.Timeout)), &llm.Error{Kind: llm.KindTimeout, Message: "no answer in time"})
	defer cancel()
	out := make([]world.Presence, len(checks))
	var wg sync.WaitGroup
	for i, check := range checks {
		wg.Go(func() {
			out[i].Server = names[i]
			if err := check(ctx); err != nil {
				out[i].Why = llm.AsError(err).Message
				return
			}
			out[i].Answers = true
		})
	}
	wg.Wait()
	for _, f := range idle {
		f()
	}
	return out
}
