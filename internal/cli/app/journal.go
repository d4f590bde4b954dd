package app

import (
	"context"

	"parley/journal"
)

// earlierCalls counts the calls of models and people that are recorded. A new run has none to read.
func earlierCalls(ctx context.Context, store journal.Journal, head *journal.Head) (int, error) {
	if head.Calls == 0 {
		return 0, nil
	}
	recorded, err := journal.Count(ctx, store)
	return recorded.Asks, err
}
