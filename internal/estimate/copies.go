package estimate

import (
	"context"
	"fmt"

	"parley/engine"
	"parley/internal/view"
	"parley/journal"
	"parley/llm"
)

// steady makes the simulated provider answer a question that is asked without chance, as at
// temperature 0, the same way each time, as real ones do.
type steady struct{ llm.Model }

// Ask asks.
func (s steady) Ask(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	if !engine.Samples(req) && req.Sample != 0 {
		same := *req
		same.Sample = 0
		req = &same
	}
	return s.Model.Ask(ctx, req)
}

// copies says whether repeats of cells would be copies of each other: what was tried of them is.
func (c Config) copies(t *trial, o *outlook) string {
	if o.foreseen { // what is tried of a part may be one episode several times
		return ""
	}
	agents := map[string]bool{}
	cells, repeated, most := 0, 0, 0
	for _, p := range o.parts {
		if p.low < 2 {
			continue
		}
		repeated++
		if !same(t.episodes[p.from:p.to]) {
			continue
		}
		cells++
		most = max(most, p.low)
		for _, name := range o.sample[p.from].Lineup {
			agents[name] = true
		}
	}
	if cells == 0 {
		return ""
	}
	where := ""
	if repeated > 1 {
		where = fmt.Sprintf(" in %d of the %d cells that were tried", cells, repeated)
	}
	why, remedy := view.Unvarying(c.Plan.Agents, func(name string) bool { return agents[name] })
	if why == "" {
		why, remedy = "No model is asked", "let models play"
	}
	return fmt.Sprintf("episodes that differ only in their deal come out the same%s: up to %d episodes would be copies of one play and count as one observation. %s, and %s asks the same whatever the deal; %s, or vary what episodes are about, as with plan.matrix",
		where, most, why, c.Plan.Kind.Name, remedy)
}

// same says whether episodes are copies of each other. A few without a model may be so by chance.
func same(episodes []*tried) bool {
	for _, ep := range episodes {
		if ep.play == (journal.Digest{}) || ep.play != episodes[0].play || len(ep.models) == 0 && len(episodes) < leastTried {
			return false
		}
	}
	return true
}
