package bulk

import (
	"context"
	"iter"
	"time"

	"parley/internal/ask/dispatch"
	"parley/internal/ask/dispatch/budget"
	"parley/llm"
)

// Asker asks many requests. An app.App implements it; tests use their own.
type Asker interface {
	// Each asks the requests of reqs concurrently and calls done once for each, from one goroutine at a time. i is
	// the position of the request in reqs. Each calls done even while reqs blocks. It returns the number of requests
	// when all of them are done.
	Each(ctx context.Context, reqs iter.Seq[*llm.Request], done func(i int, r llm.Result)) int
	// Drain refuses waiting requests with llm.KindCanceled and lets those in flight finish.
	Drain()
	// Stats returns the current figures.
	Stats() dispatch.Snapshot
	// Close releases the resources of Each. Nothing may be in flight.
	Close() error
}

// Spender is an asker with a budget.
type Spender interface{ Budget() *budget.Budget }

// Waiter is an asker that lists what its calls wait for, such as a provider that cannot be reached.
type Waiter interface {
	Waits(time.Time) []dispatch.Wait
}
