package viewer

import (
	"context"
	"slices"

	"parley/internal/kit/statmath"
	"parley/internal/run/results"
	"parley/internal/run/runfile"
	"parley/world"
)

// Scores is the main score of a run: the first that its episodes have, by agent.
type Scores struct {
	Name string
	Of   []Score
	More int  // agents that are left out
	Many bool // the run has too many episodes to compute it here
}

// Score is the mean of an agent with its interval. The agent is empty if the score is of the whole episode.
type Score struct {
	Agent string
	Mean  statmath.Quantity
}

// The limits of what is computed and listed.
const (
	maxEpisodes = 20_000
	maxAgents   = 3
)

// scores computes the main score of a run as its report does. A file that cannot be read has none: the list says why.
func (c *runCatalog) scores(ctx context.Context, path string) (s Scores) {
	store, err := runfile.OpenRead(path)
	if err != nil {
		return s
	}
	defer func() { _ = store.Close() }() // it was only read
	o, err := store.Outline(ctx)
	if err != nil || o.Begun == nil || o.Ended == 0 {
		return s
	}
	if o.Ended+o.Failed > maxEpisodes {
		return Scores{Many: true}
	}
	head, err := store.Head(ctx)
	if err != nil {
		return s
	}
	r := results.Outcomes(head, c.KindOf(head.Begun))
	all := r.Scores(func(g results.Group) results.Group { return results.Group{Score: g.Score, Agent: g.Agent} })
	if len(all) == 0 {
		return s
	}
	s.Name = all[0].Score
	all = slices.DeleteFunc(all, func(one results.Score) bool { return one.Score != s.Name })
	place := func(one results.Score) int {
		return slices.IndexFunc(head.Begun.Agents, func(a world.Agent) bool { return a.Name == one.Agent })
	}
	slices.SortStableFunc(all, func(a, b results.Score) int { return place(a) - place(b) })
	for _, one := range all[:min(len(all), maxAgents)] {
		s.Of = append(s.Of, Score{one.Agent, one.Estimate()})
	}
	s.More = len(all) - len(s.Of)
	return s
}
