// Package telemetry sends spans of calls and metrics to an OpenTelemetry collector, with OTLP over HTTP
// and the names of the GenAI conventions.
//
// It promises that a nil Exporter, a nil Span and a nil Play do nothing; that a call never waits for the
// collector; and that nothing that is sent contains text of requests or answers.
//
// It does not count what a process does besides calls: packages monitor and gateway do, as Page.
package telemetry

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
)

// Exporter sends spans and metrics. A nil Exporter does nothing.
type Exporter struct {
	sampler sampler
	spans   *spanQueue // nil: no spans are sent
	meter   *meter     // nil: no metrics are sent
	closing chan struct{}
	cancel  context.CancelCauseFunc
	senders sync.WaitGroup
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
	forSpans, err := variables{env, traces}.sender()
	if err != nil {
		return nil, err
	}
	forMetrics, err := variables{env, telemetryMetrics}.sender()
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
	queueSpans = 2048            // how many spans wait for the collector; more are lost
	batchSpans = 512             // how many spans are sent at once
	interval   = 5 * time.Second // the longest time that a span waits for others
	maxTry     = time.Minute     // for all attempts at a request with spans
)
