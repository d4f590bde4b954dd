package bulk

import (
	"context"
	"iter"
	"time"

	"parley/internal/dispatch"
	"parley/llm"
)

// Asker asks many requests. It is what ask needs of an app.App, and what tests put in
// its place.
type Asker interface {
	// Each asks what reqs gives, concurrently, and calls done once for each request it
	// took, from one goroutine at a time; i is the request's place in reqs. While reqs
	// blocks, done goes on. It returns how many it took when all of them are done.
	Each(ctx context.Context, reqs iter.Seq[*llm.Request], done func(i int, r llm.Result)) int
	// Drain refuses what waits with llm.KindCanceled and lets what is in flight finish.
	Drain()
	// Stats says what is going on now.
	Stats() dispatch.Snapshot
	// Close lets go of what Each used. Nothing may be in flight.
	Close() error
}

// Waiter is an asker that can say what it waits for.
type Waiter interface {
	// Waits lists what calls wait for at now, such as a provider that cannot be reached.
	Waits(now time.Time) []string
}
