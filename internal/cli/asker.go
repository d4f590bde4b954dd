package cli

import (
	"context"
	"fmt"
	"iter"
	"time"

	"parley/internal/app"
	"parley/internal/dispatch"
	"parley/internal/dispatch/outage"
	"parley/llm"
)

// asker asks many requests. It is what ask needs of an app.App, and what tests put in
// its place.
type asker interface {
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

// waiter is an asker that can say what it waits for.
type waiter interface {
	// Waits lists what calls wait for at now, such as a provider that cannot be reached.
	Waits(now time.Time) []string
}

// openApp puts together what c describes. Whatever it objects to is the user's to change.
func openApp(c app.Config) (asker, error) {
	a, err := app.Open(c)
	if err != nil {
		return nil, asUsage(err)
	}
	return a, nil
}

// outage writes that a provider cannot be reached and is waited for, or that it is back.
func (s *State) outage(o outage.Outage) {
	fmt.Fprintf(s.err, "parley: %s\n", cut(safe(oneLine(o.Text(time.Now()))), 400))
}

// notice writes what somebody who pays should know of a model. Not even a quiet verb keeps
// that to itself.
func (s *State) notice(n dispatch.Notice) {
	fmt.Fprintf(s.err, "parley: warning: %s\n", cut(safe(oneLine(n.Text)), 400))
}
