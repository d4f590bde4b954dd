package telemetry

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// spanQueue sends spans.
type spanQueue struct {
	*sender
	resource message
	queue    chan message
	full     atomic.Int64 // spans for which the queue had no room
	failed   int64        // spans that the collector did not accept
	err      error        // of the last failure
}

// error says how many spans were lost. The sender has ended.
func (q *spanQueue) error() error {
	full := q.full.Load()
	switch {
	case q.failed > 0:
		return fmt.Errorf("telemetry: %d spans were not sent: %w", q.failed+full, q.err)
	case full > 0:
		return fmt.Errorf("telemetry: %d spans were not sent: the collector was too slow", full)
	default:
		return nil
	}
}

// offer queues a span.
func (q *spanQueue) offer(span message) {
	select {
	case q.queue <- span:
	default:
		if q.full.Add(1) == 1 {
			q.failing(errors.New("it is too slow, and spans are lost"))
		}
	}
}

// send sends spans until closing is closed.
func (q *spanQueue) send(ctx context.Context, closing <-chan struct{}) {
	defer q.client.CloseIdleConnections()
	tick := time.NewTicker(interval)
	defer tick.Stop()
	var batch []message
	for last := false; !last; {
		select {
		case span := <-q.queue:
			if batch = append(batch, span); len(batch) < batchSpans {
				continue
			}
		case <-tick.C:
		case <-closing:
			last, q.last = true, true
			for len(q.queue) > 0 {
				batch = append(batch, <-q.queue)
			}
		}
		if len(batch) == 0 {
			continue
		}
		if err := q.export(ctx, maxTry, q.resource, batch); err != nil {
			q.failed, q.err = q.failed+int64(len(batch)), err
		}
		batch = batch[:0]
	}
}
