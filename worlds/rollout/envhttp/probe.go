package envhttp

import (
	"context"
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
	ctx, cancel := context.WithTimeoutCause(ctx, min(probeTime, seconds(p.Pool.Timeout)), &llm.Error{Kind: llm.KindTimeout, Message: "no answer in time"})
	defer cancel()
	out := make([]world.Presence, len(hosts))
	var wg sync.WaitGroup
	for i, h := range hosts {
		wg.Go(func() {
			out[i].Server = p.Servers[i]
			if err := h.Check(ctx, func(string) bool { return false }); err != nil {
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
