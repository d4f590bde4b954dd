package sim

import "context"

// Gate limits the number of requests in flight. A nil Gate has no limit.
type Gate struct {
	places chan struct{}
	queue  bool
}

// NewGate returns the Gate of l, or nil if l does not limit requests in flight.
func NewGate(l Limits) *Gate {
	if l.Concurrency <= 0 {
		return nil
	}
	return &Gate{places: make(chan struct{}, l.Concurrency), queue: l.Queue}
}

// Enter admits a request, after a wait if the Gate queues. It returns a Refusal if the Gate is full,
// or the cause of ctx if it is done first. Otherwise the caller must call Leave.
func (g *Gate) Enter(ctx context.Context) (*Refusal, error) {
	if g == nil {
		return nil, nil
	}
	select {
	case g.places <- struct{}{}:
		return nil, nil
	default:
	}
	if !g.queue {
		n := float64(cap(g.places))
		return &Refusal{What: "concurrency", Limit: n, Used: n, Asked: 1}, nil
	}
	select {
	case g.places <- struct{}{}:
		return nil, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Leave ends a request.
func (g *Gate) Leave() {
	if g != nil {
		<-g.places
	}
}
