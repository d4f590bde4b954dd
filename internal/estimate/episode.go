package estimate

import (
	"fmt"

	"parley/llm"
)

// episodeBudget says what an episode's own budget would do, where it would do something.
func (c Config) episodeBudget(t *trial, e *Estimate) string {
	limit := c.Plan.EpisodeBudget
	switch {
	case limit == 0 || e.Cost == nil:
		return ""
	case t.dearest > limit:
		return fmt.Sprintf("one call can cost up to about %v, which is more than the episode_budget of %v, so episodes would end there: set max_tokens", t.dearest, limit)
	case llm.Dollars(e.Cost.Episode.Mean)+t.dearest > limit:
		return fmt.Sprintf("an episode costs about %v, and before each call the most that it can cost (up to about %v) must be there: an episode_budget of %v would stop some", llm.Dollars(e.Cost.Episode.Mean), t.dearest, limit)
	default:
		return ""
	}
}
