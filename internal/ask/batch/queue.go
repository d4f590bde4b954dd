package batch

import (
	"context"
	"slices"
	"sync"
	"time"

	"parley/internal/ask/provider"
)

// uploadsAtOnce is how many batches are sent to one provider at a time.
const uploadsAtOnce = 4

// Queue is a provider's batch API and its limits: batches created in an hour, and tokens that wait,
// by model.
type Queue struct {
	API API

	name    string
	limits  provider.Batch
	sending chan struct{}

	mu      sync.Mutex
	created []time.Time // in the last hour, roughly in order
	models  map[string]*backlog
	changed chan struct{} // closed when there may be room
	closed  bool          // the provider turned out to have no batch API
}

// backlog is what waits at the provider for one model.
type backlog struct {
	tokens   int // in batches that have not ended
	batches  int
	limit    int  // limit tokens; 0: not known
	alone    bool // one batch at a time, since two were too much
	maxLines int  // lines of a batch, after larger ones failed; 0: the API's
	refusals int  // batches that were refused in a row
}

func newQueue(name string, d API, limits provider.Batch) *Queue {
	return &Queue{
		API: d, name: name, limits: limits, sending: make(chan struct{}, uploadsAtOnce),
		models: map[string]*backlog{}, changed: make(chan struct{}),
	}
}

func (q *Queue) backlogOf(model string) *backlog {
	b := q.models[model]
	if b == nil {
		b = &backlog{limit: q.limits.Tokens}
		q.models[model] = b
	}
	return b
}

// enter waits until a batch of so many tokens may be created, and counts it.
func (q *Queue) enter(ctx context.Context, b *Batcher, model string, tokens int, due time.Time) halt {
	for {
		q.mu.Lock()
		now := time.Now()
		wait := q.blocked(q.backlogOf(model), tokens, now)
		if wait == 0 {
			waiting := q.backlogOf(model)
			waiting.tokens += tokens
			waiting.batches++
			q.created = append(q.created, now)
			q.mu.Unlock()
			return goOn
		}
		changed := q.changed
		q.mu.Unlock()
		if h := b.wait(ctx, wait, due, changed); h != goOn {
			return h
		}
	}
}

// blocked returns how long a batch must wait.
func (q *Queue) blocked(b *backlog, tokens int, now time.Time) time.Duration {
	q.created = slices.DeleteFunc(q.created, func(t time.Time) bool { return now.Sub(t) >= time.Hour })
	if n := q.limits.PerHour; n > 0 && len(q.created) >= n {
		return max(time.Millisecond, time.Hour-now.Sub(slices.MinFunc(q.created, time.Time.Compare)))
	}
	if b.batches > 0 && (b.alone || b.limit > 0 && b.tokens+tokens > b.limit) {
		return time.Hour // until another batch ends, which wakes it
	}
	return 0
}

// leave stops counting a batch.
func (q *Queue) leave(model string, tokens int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	b := q.backlogOf(model)
	b.tokens -= tokens
	b.batches--
	close(q.changed)
	q.changed = make(chan struct{})
}

// adopt counts a batch of an earlier process that is still processed.
func (q *Queue) adopt(model string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.backlogOf(model).batches++
}

// crowded learns that a batch of so many lines did not fit beside the tokens that wait. limit is
// how many may wait according to the provider, or 0.
func (q *Queue) crowded(model string, lines, limit int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch b := q.backlogOf(model); {
	case limit > 0 && limit != b.limit:
		b.limit = limit
	case b.batches > 0:
		b.alone = true
	default: // other programs' tokens wait, or our estimate is too low
		b.maxLines = max(1, lines/2)
	}
}

// smaller learns that a batch of so many lines was refused for its contents or size.
func (q *Queue) smaller(model string, lines int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.backlogOf(model).maxLines = max(1, lines/2)
}

// refused is smaller for a batch that was not created. It returns how many were refused in a row.
func (q *Queue) refused(model string, lines int) (row int) {
	q.smaller(model, lines)
	q.mu.Lock()
	defer q.mu.Unlock()
	b := q.backlogOf(model)
	b.refusals++
	return b.refusals
}

// accepted learns that a batch of so many lines was accepted.
func (q *Queue) accepted(model string, lines int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	b := q.backlogOf(model)
	if b.refusals = 0; b.maxLines > 0 && lines >= b.maxLines {
		b.maxLines *= 2
	}
}

// disable learns that the provider has no batch API.
func (q *Queue) disable() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
}

func (q *Queue) isDisabled() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.closed
}

// lineBytes is an upper bound on what a line takes besides its body.
const lineBytes = 256

// shape cuts the items that wait for one model into batches within the limits. It returns items
// that are too large for any batch separately.
func (q *Queue) shape(model string, waiting []*pending) (batches [][]*pending, tooLarge []*pending) {
	q.mu.Lock()
	defer q.mu.Unlock()
	b := q.backlogOf(model)
	limit, room := max(1, q.limits.Requests), q.limits.Bytes-1024
	if b.maxLines > 0 {
		limit = min(limit, b.maxLines)
	}
	var now []*pending
	bytes, tokens := int64(0), 0
	for _, p := range waiting {
		size := int64(p.Weight.Bytes + lineBytes)
		if size > room {
			tooLarge = append(tooLarge, p)
			continue
		}
		full := len(now) == limit || bytes+size > room || b.limit > 0 && tokens+p.Tokens > b.limit
		if full && len(now) > 0 {
			batches = append(batches, now)
			now, bytes, tokens = nil, 0, 0
		}
		now = append(now, p)
		bytes += size
		tokens += p.Tokens
	}
	if len(now) > 0 {
		batches = append(batches, now)
	}
	return batches, tooLarge
}
