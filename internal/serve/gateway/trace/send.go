package trace

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"parley/internal/wire/fault"
)

const (
	firstWait = 5 * time.Second  // before the second attempt at a request; later ones double it
	maxWait   = 30 * time.Second // between attempts
	maxTry    = time.Minute      // for all attempts at a request
)

// outcome counts the spans that the collector did not get.
type outcome struct {
	full   atomic.Int64 // the queue had no room
	failed int64
	err    error // of the last failure
}

func (o *outcome) error() error {
	full := o.full.Load()
	switch {
	case o.failed > 0:
		return fmt.Errorf("trace: %d spans were not sent: %w", o.failed+full, o.err)
	case full > 0:
		return fmt.Errorf("trace: %d spans were not sent: the collector was too slow", full)
	default:
		return nil
	}
}

// offer queues a span.
func (t *Tracer) offer(span message) {
	select {
	case t.queue <- span:
	default:
		t.sent.full.Add(1)
	}
}

// send sends spans until the tracer is closed.
func (t *Tracer) send(ctx context.Context) {
	defer close(t.ended)
	defer t.settings.client.CloseIdleConnections()
	tick := time.NewTicker(interval)
	defer tick.Stop()
	var batch []message
	for {
		closing := false
		select {
		case span := <-t.queue:
			if batch = append(batch, span); len(batch) < batchSpans {
				continue
			}
		case <-tick.C:
		case <-t.closing:
			closing = true
			for len(t.queue) > 0 {
				batch = append(batch, <-t.queue)
			}
		}
		if len(batch) > 0 {
			if err := t.export(ctx, batch); err != nil {
				t.sent.failed, t.sent.err = t.sent.failed+int64(len(batch)), err
			}
			batch = batch[:0]
		}
		if closing {
			return
		}
	}
}

// export sends spans in one request, and tries again after failures that may pass.
func (t *Tracer) export(ctx context.Context, spans []message) error {
	ctx, cancel := context.WithTimeout(ctx, maxTry)
	defer cancel()
	body, err := t.body(spans)
	if err != nil {
		return err
	}
	for wait := firstWait; ; wait = min(2*wait, maxWait) {
		after, err := t.post(ctx, body)
		if err == nil || after == never {
			return err
		}
		select {
		case <-time.After(max(wait, after)):
		case <-ctx.Done():
			return err
		}
	}
}

// body returns a request with spans.
func (t *Tracer) body(spans []message) ([]byte, error) {
	scope := message(nil).bytes(1, message(nil).text(1, "parley")).all(2, spans)
	m := message(nil).bytes(1, message(nil).bytes(1, t.settings.resource).bytes(2, scope))
	if !t.settings.gzip {
		return m, nil
	}
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write(m)
	err = errors.Join(err, w.Close())
	return b.Bytes(), err
}

// never is the time to wait after a failure that does not pass.
const never = -1

// post sends a request once. After a failure it returns how long the collector wants to be left alone.
func (t *Tracer) post(ctx context.Context, body []byte) (after time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, t.settings.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.settings.url, bytes.NewReader(body))
	if err != nil {
		return never, err
	}
	req.Header = t.settings.header.Clone()
	if t.settings.gzip {
		req.Header.Set("Content-Encoding", "gzip")
	}
	res, err := t.settings.client.Do(req)
	if err != nil {
		return 0, err
	}
	_, _ = io.CopyN(io.Discard, res.Body, 64<<10) // so that the connection can be used again
	_ = res.Body.Close()
	switch res.StatusCode {
	case http.StatusOK, http.StatusAccepted, http.StatusNoContent:
		return 0, nil
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return fault.RetryAfter(res.Header, time.Now()), fmt.Errorf("the collector answered %s", res.Status)
	default:
		return never, fmt.Errorf("the collector answered %s", res.Status)
	}
}
