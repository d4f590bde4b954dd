package export

import (
	"context"
	"slices"

	"parley/internal/run/results"
	"parley/internal/run/runfile"
	"parley/world"
)

// score is a row of Scores.
type score struct {
	run string
	*runfile.Listed
	agent     *world.Agent
	variation map[string]string // tags
	world.Score
}

func (x *export) scores(ctx context.Context) error {
	columns := scoreColumns()
	return x.each(ctx, func(l *runfile.Listed) error {
		if l.Ended == nil {
			return nil
		}
		for _, s := range slices.Concat(l.Ended.Outcome.Scores, x.added[l.Episode]) {
			row := score{run: x.run, Listed: l, Score: s, agent: x.agent(l.Spec.Lineup[s.Seat]), variation: x.variation(l.Spec.Cell)}
			if err := put(x, columns, &row); err != nil {
				return err
			}
		}
		return nil
	})
}

// agent returns the agent with a name.
func (x *export) agent(name string) *world.Agent {
	for i := range x.agents {
		if x.agents[i].Name == name {
			return &x.agents[i]
		}
	}
	return &world.Agent{Name: name}
}

// tagsCell returns tags as JSON, or null without any.
func tagsCell(of ...map[string]string) cell {
	if all := results.JoinTags(of...); all != nil {
		return encoded(all)
	}
	return cell{}
}

func scoreColumns() []column[score] {
	return []column[score]{
		few("run", "the id of the run", func(s *score) cell { return text(s.run) }),
		col("episode", Integer, "the number of its episode, from 0", func(s *score) cell { return integer(s.Episode) }),
		few("kind", "the kind of the world", func(s *score) cell { return text(s.Spec.Kind) }),
		few("cell", "the cell of the matrix that the episode repeats", func(s *score) cell { return some(s.Spec.Cell) }),
		col("deal", Integer, "what the episode's random draws depend on: compare episodes with the same deal", func(s *score) cell { return integer(s.Spec.Deal) }),
		few("state", "the state of the episode: `ended` or `failed`", func(s *score) cell { return text(s.State()) }),
		few("seat", "the seat that has the score; null for the whole episode", func(s *score) cell { return some(s.Seat) }),
		few("agent", "the name of the agent in the seat", func(s *score) cell { return some(s.agent.Name) }),
		few("model", "the model of the agent, as provider/model; null for a bot", func(s *score) cell { return some(s.agent.Model) }),
		{Column{Name: "tags", Type: JSON, Doc: "the tags of the agent and of the variation, an object", few: true}, func(s *score) cell { return tagsCell(s.agent.Tags, s.variation) }},
		few("name", "the name of the score", func(s *score) cell { return text(s.Name) }),
		col("value", Double, "its value", func(s *score) cell { return double(s.Value) }),
	}
}
