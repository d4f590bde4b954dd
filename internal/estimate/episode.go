package estimate

import (
	"fmt"

	"parley/llm"
)

// episodeBudget warns if the episode budget would stop episodes.
func (c Config) episodeBudget(t *trial, e *Estimate) string {
	limit := c.Plan.EpisodeBudget
	switch {
	case limit == 0 || e.Cost == nil:
		return ""
	case t.maxCall > limit:
		return fmt.Sprintf("one call can cost up to about %v, which is more than the episode_budget of %v, so episodes would end there: set max_tokens", t.maxCall, limit)
	case llm.Dollars(e.Cost.Episode.Mean)+t.maxCall > limit:
		return fmt.Sprintf("an episode costs about %v, and a call is made only if the most that it can cost (up to about %v) is left: an episode_budget of %v would stop some episodes", llm.Dollars(e.Cost.Episode.Mean), t.maxCall, limit)
	default:
		return ""
	}
}
