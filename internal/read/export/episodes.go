package export

import (
	"context"
	"encoding/json"

	"parley/internal/run/runfile"
	"parley/journal"
	"parley/llm"
	"parley/world"
)

// listAtOnce is how many episodes are read at once.
const listAtOnce = 1024

// episode is a row of Episodes.
type episode struct {
	run string
	*runfile.Listed
	spent spending
	tags  map[string]string // of its variation
}

// spending is the calls and cost of an episode.
type spending struct {
	journal.Counts
	failed journal.Counts
	usage  llm.Usage
	cost   llm.Money
}

// each calls f with every episode, in order.
func (x *export) each(ctx context.Context, f func(*runfile.Listed) error) error {
	for from := 0; ; {
		list, err := x.store.List(ctx, runfile.Listing{From: from, Limit: listAtOnce})
		if x.salvaged(ctx, err) {
			continue
		}
		if err != nil || len(list) == 0 {
			return err
		}
		for i := range list {
			if x.without[list[i].Episode] {
				continue
			}
			if err := f(&list[i]); err != nil {
				return err
			}
		}
		from = list[len(list)-1].Episode + 1
	}
}

func (x *export) listed(ctx context.Context) error {
	spent, err := x.spent(ctx)
	if err != nil {
		return err
	}
	columns := episodeColumns()
	return x.each(ctx, func(l *runfile.Listed) error {
		e := episode{run: x.run, Listed: l, tags: x.variation(l.Spec.Cell)}
		if l.Episode < len(spent) { // otherwise the plan asked for it since
			e.spent = spent[l.Episode]
		}
		return put(x, columns, &e)
	})
}

// spent adds up the spending of each episode. Only this needs memory for each episode: a few numbers.
func (x *export) spent(ctx context.Context) ([]spending, error) {
	out := make([]spending, x.episodes)
	err := x.store.Brief(ctx, func(entry journal.Entry) error {
		r, ok := entry.(*journal.Replied)
		if !ok || r.Episode < 0 || r.Episode >= len(out) {
			return nil
		}
		s := &out[r.Episode]
		s.Add(r)
		s.cost = s.cost.Plus(r.Cost())
		switch {
		case r.Error != nil:
			s.failed.Add(r)
			s.usage = s.usage.Plus(r.Error.Usage)
		case r.Response != nil:
			s.usage = s.usage.Plus(r.Response.Usage)
		}
		return nil
	})
	if x.salvaged(ctx, err) {
		return x.spent(ctx)
	}
	return out, err
}

func episodeColumns() []column[episode] {
	return []column[episode]{
		few("run", "the id of the run", func(e *episode) cell { return text(e.run) }),
		col("episode", Integer, "its number, from 0", func(e *episode) cell { return integer(e.Episode) }),
		col("stage", Integer, "the stage of the plan, from 0", func(e *episode) cell { return integer(e.Stage) }),
		few("kind", "the kind of the world", func(e *episode) cell { return text(e.Spec.Kind) }),
		few("cell", "the cell of the matrix that it repeats", func(e *episode) cell { return some(e.Spec.Cell) }),
		col("deal", Integer, "what its random draws depend on: episodes with the same deal draw the same", func(e *episode) cell { return integer(e.Spec.Deal) }),
		{Column{Name: "params", Type: JSON, Doc: "the params of the world", few: true}, func(e *episode) cell { return some(string(e.Spec.Params)) }},
		{Column{Name: "lineup", Type: JSON, Doc: "seat to agent", few: true}, func(e *episode) cell { return encoded(e.Spec.Lineup) }},
		{Column{Name: "tags", Type: JSON, Doc: "the tags of its variation, an object", few: true}, func(e *episode) cell { return tagsCell(e.tags) }},
		few("state", "`waiting`, `playing`, `ended` or `failed`", func(e *episode) cell { return text(e.State()) }),
		col("attempt", Integer, "the number of the attempt, from 0; null: it did not begin", func(e *episode) cell { return cell{there: e.Begun, n: int64(e.Attempt)} }),
		col("failed", Text, "why it failed", ofEnded(func(e *journal.Ended) cell { return some(e.Outcome.Failed) })),
		col("scores", JSON, "the scores of its outcome, a list; the table `scores` has them one by one", ofEnded(func(e *journal.Ended) cell { return scoreList(e.Outcome.Scores) })),
		col("data", JSON, "the world's own data in the outcome", ofEnded(func(e *journal.Ended) cell {
			data, _ := e.Outcome.Data.(json.RawMessage)
			return some(string(data))
		})),
		col("calls", Integer, "calls of models and people that were answered or failed, in all attempts", func(e *episode) cell { return integer(e.spent.Asks) }),
		col("acts", Integer, "requests to environments, and to other things outside of the world, in all attempts", func(e *episode) cell { return integer(e.spent.Acts) }),
		col("failed_calls", Integer, "of the calls, those that failed", func(e *episode) cell { return integer(e.spent.failed.Asks) }),
		col("failed_acts", Integer, "of the acts, those that failed", func(e *episode) cell { return integer(e.spent.failed.Acts) }),
		col("input_tokens", Integer, "tokens of all its prompts", func(e *episode) cell { return integer(e.spent.usage.Input) }),
		col("cached_tokens", Integer, "of these, read from the provider's cache", func(e *episode) cell { return integer(e.spent.usage.Cached) }),
		col("output_tokens", Integer, "tokens of all its answers", func(e *episode) cell { return integer(e.spent.usage.Output) }),
		col("reasoning_tokens", Integer, "of these, reasoning", func(e *episode) cell { return integer(e.spent.usage.Reasoning) }),
		col("dollars", Double, "its cost to this run", func(e *episode) cell { return double(e.spent.cost.Dollars()) }),
		col("ended_at", Time, "when it ended", ofEnded(func(e *journal.Ended) cell { return moment(e.At) })),
	}
}

// ofEnded returns a value that only an episode that ended has.
func ofEnded(of func(*journal.Ended) cell) func(*episode) cell {
	return func(e *episode) cell {
		if e.Ended == nil {
			return cell{}
		}
		return of(e.Ended)
	}
}

// scoreList returns scores as JSON. A value that JSON has no number for is a text.
func scoreList(scores []world.Score) cell {
	type row struct {
		Seat  string `json:"seat,omitempty"`
		Name  string `json:"name"`
		Value any    `json:"value"`
	}
	rows := make([]row, len(scores))
	for i, s := range scores {
		rows[i] = row{s.Seat, s.Name, s.Value}
		if name, ok := odd(s.Value); ok {
			rows[i].Value = name
		}
	}
	return list(rows)
}
