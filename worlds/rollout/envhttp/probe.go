package envhttp

import (
	"context"
	"sync"
	"time"

	"parley/llm"
	"parley/worlds/rollout/rules"
)

// Presence is whether an environment server is there.
type Presence struct {
	Server  string `json:"server"`
	Answers bool   `json:"answers"`
	Why     string `json:"why,omitempty"` // it does not
}

// probeTime is how long a server may take to say that it is there.
const probeTime = 5 * time.Second

// Probe asks the servers of p, all at once, whether they are there. Nothing is opened or
// changed on them.
func Probe(ctx context.Context, p *rules.Params) []Presence {
	hosts, idle, _ := reach(p)
	ctx, cancel := context.WithTimeoutCause(ctx, min(probeTime, seconds(p.Pool.Timeout)), &llm.Error{Kind: llm.KindTimeout, Message: "no answer in time"})
	defer cancel()
	out := make([]Presence, len(hosts))
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
