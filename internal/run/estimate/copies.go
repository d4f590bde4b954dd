package estimate

import (
	"context"
	"fmt"

	"parley/internal/run/engine"
	"parley/internal/run/results"
	"parley/journal"
	"parley/llm"
)

// steady makes the simulated provider answer a deterministic request, such as one at
// temperature 0, the same way each time, as real providers do.
type steady struct{ llm.Model }

// Ask asks the model.
func (s steady) Ask(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	if !engine.Samples(req) && req.Sample != 0 {
		same := *req
		same.Sample = 0
		req = &same
	}
	return s.Model.Ask(ctx, req)
}

// copies warns if the repeats of cells in the sample are copies of each other.
func (c Config) copies(t *trial, o *outlook) string {
	if o.foreseen { // the sample of a part may repeat one episode
		return ""
	}
	agents := map[string]bool{}
	cells, repeated, repeats := 0, 0, 0
	for _, p := range o.parts {
		if p.low < 2 {
			continue
		}
		repeated++
		if !same(t.episodes[p.from:p.to]) {
			continue
		}
		cells++
		repeats = max(repeats, p.low)
		for _, name := range o.sample[p.from].Lineup {
			agents[name] = true
		}
	}
	if cells == 0 {
		return ""
	}
	where := ""
	if repeated > 1 {
		where = fmt.Sprintf(" in %d of the %d cells of the sample", cells, repeated)
	}
	why, remedy := results.Unvarying(c.Plan.Agents, func(name string) bool { return agents[name] })
	if why == "" {
		why, remedy = "No model is asked", "let models play"
	}
	return fmt.Sprintf("episodes that differ only in their deal turn out the same%s: up to %d episodes would be copies of one play and count as one observation. %s, and %s asks the same for every deal; %s, or vary the episodes, for example with plan.matrix",
		where, repeats, why, c.Plan.Kind.Name, remedy)
}

// same reports whether episodes are copies of each other. A few episodes without a model may be
// equal by chance, so they do not count.
func same(episodes []*tried) bool {
	for _, ep := range episodes {
		if ep.play == (journal.Digest{}) || ep.play != episodes[0].play || len(ep.models) == 0 && len(episodes) < minSample {
			return false
		}
	}
	return true
}
