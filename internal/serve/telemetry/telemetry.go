// Package telemetry sends spans of calls and metrics to an OpenTelemetry collector, with OTLP over HTTP
// and the names of the GenAI conventions.
//
// It also makes pages of metrics for Prometheus, and serves the page of a process that plays a run.
//
// It promises that a nil Exporter, a nil Span and a nil Trace do nothing; that a call never waits for the
// collector or for a reader of a page; and that nothing that is sent or served contains a key, or text of
// requests or answers.
//
// telemetry.go has the Exporter and its queue; settings.go reads its environment variables; span.go has the spans
// and traces of calls; meter.go measures calls; page.go has the pages.
package telemetry

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"parley/internal/ask/wire/fault"
)

// Exporter sends spans and metrics. A nil Exporter does nothing.
type Exporter struct {
	sampler sampler
	spans   *spanQueue // nil: no spans are sent
	meter   *meter     // nil: no metrics are sent
	closing chan struct{}
	cancel  context.CancelCauseFunc
	senders sync.WaitGroup
	vendors map[string]string // by the name of a provider; set by Know
}

// Open returns an Exporter for a service, as the usual environment variables say (such as
// OTEL_EXPORTER_OTLP_ENDPOINT); nil if they name no collector. It opens no connection. Close it. failing is called
// when the collector does not take something for the first time, and never again: Close says what was lost.
func Open(ctx context.Context, env func(name string) (value string, ok bool), service, version string, failing func(error)) (*Exporter, error) {
	x, err := open(env, service, version)
	if err != nil {
		return nil, fmt.Errorf("telemetry: %w", err)
	}
	if x == nil {
		return nil, nil
	}
	ctx, x.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	var once sync.Once
	tell := func(err error) {
		once.Do(func() {
			failing(fmt.Errorf("telemetry: the collector does not take everything (nothing waits for it): %w", err))
		})
	}
	if x.spans != nil {
		x.spans.failing = tell
		x.senders.Go(func() { x.spans.send(ctx, x.closing) })
	}
	if x.meter != nil {
		x.meter.failing = tell
		x.senders.Go(func() { x.meter.send(ctx, x.closing) })
	}
	return x, nil
}

// open reads the environment.
func open(env lookup, service, version string) (*Exporter, error) {
	if strings.EqualFold(env.value("OTEL_SDK_DISABLED"), "true") {
		return nil, nil
	}
	forSpans, err := variables{env, tracesSignal}.sender()
	if err != nil {
		return nil, err
	}
	forMetrics, err := variables{env, metricsSignal}.sender()
	if err != nil || forSpans == nil && forMetrics == nil {
		return nil, err
	}
	resource, err := env.resource(service, version)
	if err != nil {
		return nil, err
	}
	x := &Exporter{closing: make(chan struct{})}
	if forSpans != nil {
		x.spans = &spanQueue{sender: forSpans, resource: resource, queue: make(chan message, queueSpans)}
		if x.sampler, err = env.sampler(); err != nil {
			return nil, err
		}
	}
	if forMetrics != nil {
		x.meter, err = newMeter(env, forMetrics, resource)
	}
	return x, err
}

// Close sends what remains, as long as ctx allows. Its error says what was lost since Open, and why. It
// is called once.
func (x *Exporter) Close(ctx context.Context) error {
	if x == nil {
		return nil
	}
	close(x.closing)
	stop := context.AfterFunc(ctx, func() { x.cancel(context.Cause(ctx)) })
	x.senders.Wait()
	stop()
	x.cancel(nil)
	var errs []error
	if x.spans != nil {
		errs = append(errs, x.spans.error())
	}
	if x.meter != nil {
		errs = append(errs, x.meter.error())
	}
	return errors.Join(errs...)
}

// samples reports whether the spans of a trace are sent.
func (x *Exporter) samples(p parent, remote bool) bool {
	return x.spans != nil && x.sampler.samples(p, remote)
}

const (
	queueSpans   = 2048            // how many spans wait for the collector; more are lost
	batchSpans   = 512             // how many spans are sent at once
	sendInterval = 5 * time.Second // the longest time that a span waits for others
	maxSendTime  = time.Minute     // for all attempts at a request with spans
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
	tick := time.NewTicker(sendInterval)
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
		if err := q.export(ctx, maxSendTime, q.resource, batch); err != nil {
			q.failed, q.err = q.failed+int64(len(batch)), err
		}
		batch = batch[:0]
	}
}

const (
	firstWait = 5 * time.Second  // before the second attempt at a request; later ones double it
	maxWait   = 30 * time.Second // between attempts
)

// sender sends requests with one kind of data to the collector.
type sender struct {
	url     string
	header  http.Header
	timeout time.Duration // of one attempt
	gzip    bool
	client  *http.Client
	failing func(error) // is told of failed attempts
	last    bool        // the exporter is being closed: Close tells of failures
}

// export sends spans or metrics of a resource in one request, and tries again after failures that
// may pass, until ctx or the time ends.
func (s *sender) export(ctx context.Context, limit time.Duration, resource message, data []message) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	body, err := s.body(resource, data)
	if err != nil {
		return err
	}
	for wait := firstWait; ; wait = min(2*wait, maxWait) {
		after, err := s.post(ctx, body)
		if err != nil && !s.last {
			s.failing(err)
		}
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

// body returns a request. OTLP numbers the fields of requests with spans and with metrics in the same way.
func (s *sender) body(resource message, data []message) ([]byte, error) {
	scope := message(nil).bytes(1, message(nil).text(1, "parley")).all(2, data)
	m := message(nil).bytes(1, message(nil).bytes(1, resource).bytes(2, scope))
	if !s.gzip {
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
func (s *sender) post(ctx context.Context, body []byte) (after time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(body))
	if err != nil {
		return never, err
	}
	req.Header = s.header.Clone()
	if s.gzip {
		req.Header.Set("Content-Encoding", "gzip")
	}
	res, err := s.client.Do(req)
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
