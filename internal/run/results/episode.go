package results

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"parley/internal/run/runfile"
	"parley/journal"
	"parley/llm"
	"parley/world"
)

// spending is what some replies of an episode add to its row.
type spending struct {
	calls, errors, tokens int
	cost                  llm.Money
	first, last           int64 // when they arrived
}

type spent map[int]*spending

func (s spent) at(episode int) *spending {
	if s[episode] == nil {
		s[episode] = &spending{}
	}
	return s[episode]
}

func (s spent) add(r *journal.Replied) {
	e := s.at(r.Episode)
	if r.Request != nil && r.Act == nil {
		e.calls++
	}
	if r.Error != nil {
		e.errors++
		e.tokens = llm.AddTokens(e.tokens, r.Error.Usage.Total())
	}
	if r.Response != nil {
		e.tokens = llm.AddTokens(e.tokens, r.Response.Usage.Total())
	}
	e.cost = e.cost.Plus(r.Cost())
	if r.At.IsZero() {
		return
	}
	at := r.At.UnixNano()
	if e.first == 0 || at < e.first {
		e.first = at
	}
	e.last = max(e.last, at)
}

const putSQL = `INSERT INTO episodes (episode, state, cell, lineup, deal, failed, calls, errors, tokens, cost, began, until)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (episode) DO UPDATE SET state = excluded.state, cell = excluded.cell, failed = excluded.failed,
    calls = calls + excluded.calls, errors = errors + excluded.errors,
    tokens = tokens + excluded.tokens, cost = cost + excluded.cost,
    until = max(until, excluded.until), began = CASE WHEN began THEN began ELSE excluded.began END`

// put writes the rows of the episodes in all.
func (x *Index) put(ctx context.Context, all spent) error {
	numbers := slices.Sorted(maps.Keys(all))
	for len(numbers) > 0 {
		// Neighbours are read together.
		n := 1
		for n < len(numbers) && numbers[n]-numbers[n-1] < 16 && numbers[n]-numbers[0] < atOnce {
			n++
		}
		first := numbers[0]
		list, err := x.store.List(ctx, runfile.Listing{From: first, Limit: numbers[n-1] - first + 1})
		if err != nil {
			return err
		}
		for i := range list {
			if s := all[list[i].Episode]; s != nil {
				if err := x.putEpisode(&list[i], s); err != nil {
					return err
				}
			}
		}
		numbers = numbers[n:]
	}
	return nil
}

func (x *Index) putEpisode(l *runfile.Listed, s *spending) error {
	failed, until := "", s.last
	if end := l.Ended; end != nil {
		failed = end.Outcome.Failed
		if !end.At.IsZero() {
			until = max(until, end.At.UnixNano())
		}
	}
	lineup := " " + LineupText(l.Spec.Lineup) + " " // so that a filter can find a whole word
	err := x.exec(putSQL, l.Episode, l.State(), l.Spec.Cell, lineup, l.Spec.Deal, failed,
		s.calls, s.errors, s.tokens, int64(s.cost), s.first, until)
	if err != nil || l.Ended == nil {
		return err
	}
	if err := x.exec(`DELETE FROM scores WHERE episode = ? AND place < ?`, l.Episode, addedPlace); err != nil {
		return err // it ended before, in an earlier attempt
	}
	return x.putScores(l.Episode, l.Ended.Outcome.Scores, 0)
}

// addedPlace is the place of the first score that was added to a run: after those of the outcome.
const addedPlace = 1 << 20

// putScores adds scores of an episode, with their places.
func (x *Index) putScores(episode int, scores []world.Score, first int) error {
	for i, sc := range scores {
		if math.IsNaN(sc.Value) {
			continue // it has no place in an order
		}
		if err := x.exec(`INSERT OR REPLACE INTO scores VALUES (?, ?, ?, ?, ?)`, sc.Name, sc.Seat, sc.Value, episode, first+i); err != nil {
			return err
		}
	}
	return nil
}

// SetAdded replaces the scores of all episodes that were added after the run was played, by episode.
func (x *Index) SetAdded(scores map[int][]world.Score) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	err := x.within(func() error {
		names, err := x.scoreNames()
		if err != nil {
			return err
		}
		for _, n := range names {
			if n.place < addedPlace {
				continue
			}
			if err := x.exec(`DELETE FROM scores WHERE name = ? AND seat = ?`, n.Name, n.Seat); err != nil {
				return err
			}
		}
		for episode, all := range scores {
			if err := x.putScores(episode, all, addedPlace); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("index: added scores: %w", err)
	}
	return nil
}
