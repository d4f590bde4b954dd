package quota

import "context"

// Gate bounds how many requests are in flight. The nil Gate bounds nothing.
type Gate struct {
	places chan struct{}
	queue  bool
}

// NewGate returns a Gate for l, or nil when it does not bound requests in flight.
func NewGate(l Limits) *Gate {
	if l.Concurrency <= 0 {
		return nil
	}
	return &Gate{places: make(chan struct{}, l.Concurrency), queue: l.Queue}
}

// Enter takes a place, waiting for one if the Gate queues. It returns a Refusal
// when there is none, and the cause of ctx's end when that comes first. A caller
// that got neither must Leave.
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

// Leave gives the place back.
func (g *Gate) Leave() {
	if g != nil {
		<-g.places
	}
}
