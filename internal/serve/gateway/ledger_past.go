package gateway

import (
	"context"
	"fmt"
	"slices"

	"parley/journal"
)

// LedgerPast reads the calls of an episode, in the order of their turns.
func LedgerPast(ctx context.Context, j journal.Journal, episode int) ([]Call, error) {
	entries, err := journal.Episode(ctx, j, episode)
	if err != nil {
		return nil, err
	}
	byTurn := map[int]*Call{}
	var order []int
	for _, e := range entries {
		switch e := e.(type) {
		case *journal.Turned:
			w, err := wireOf(e.Notes)
			if err != nil {
				return nil, fmt.Errorf("%w (episode %d, turn %d)", err, episode, e.Turn.Turn)
			}
			byTurn[e.Turn.Turn] = &Call{Episode: episode, Turn: e.Turn.Turn, Digest: e.Digest, Wire: w, Note: noteOf(e.Notes)}
			order = append(order, e.Turn.Turn)
		case *journal.Replied:
			if c := byTurn[e.Turn.Turn]; c != nil {
				c.Label, c.Request, c.Act, c.Response, c.Error, c.At = e.Label, e.Request, e.Act, e.Response, e.Error, e.At
			}
		}
	}
	slices.Sort(order)
	out := make([]Call, 0, len(order))
	for _, turn := range order {
		if c := byTurn[turn]; c.Response != nil || c.Error != nil {
			out = append(out, *c)
		}
	}
	return out, nil
}
