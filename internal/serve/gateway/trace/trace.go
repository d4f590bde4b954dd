// Package trace sends spans of calls to an OpenTelemetry collector, following the GenAI conventions.
//
// It promises that a nil Tracer and a nil Span do nothing; that a call never waits for the collector; and that
// spans contain no text of requests or answers.
//
// It is not for metrics.
package trace

import (
	"context"
	"fmt"
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"parley/internal/provider"
	"parley/internal/serve/gateway/format"
	"parley/llm"
)

// Tracer makes spans. A nil Tracer makes none.
type Tracer struct {
	provider *sdk.TracerProvider
	tracer   trace.Tracer
}

// Open returns a Tracer that sends spans with OTLP over HTTP, as the usual environment variables say (such as
// OTEL_EXPORTER_OTLP_ENDPOINT). It opens no connection.
func Open(ctx context.Context, version string) (*Tracer, error) {
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	return newTracer(version, sdk.WithBatcher(exporter)), nil
}

func newTracer(version string, to sdk.TracerProviderOption) *Tracer {
	about := resource.NewSchemaless(attribute.String("service.name", "parley-gateway"), attribute.String("service.version", version))
	p := sdk.NewTracerProvider(to, sdk.WithResource(about))
	return &Tracer{provider: p, tracer: p.Tracer("parley/gateway")}
}

// Close sends the remaining spans.
func (t *Tracer) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	return t.provider.Shutdown(ctx)
}

// Span is the span of one call. It may be nil.
type Span struct{ span trace.Span }

// Start begins the span of a call, as a child of the one in the client's header.
func (t *Tracer) Start(h http.Header, api format.API, p provider.Provider, session string, c *format.Call) *Span {
	if t == nil {
		return nil
	}
	operation := operationOf(api)
	ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.HeaderCarrier(h))
	_, span := t.tracer.Start(ctx, operation+" "+c.Request.Model, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(asked(operation, p, session, c)...))
	return &Span{span}
}

// End ends the span with the result of the call.
func (s *Span) End(r *llm.Response, e *llm.Error) {
	if s == nil {
		return
	}
	switch {
	case e != nil:
		s.span.SetAttributes(attribute.String(errorType, string(e.Kind)))
		s.span.SetStatus(codes.Error, string(e.Kind))
	case r != nil:
		s.span.SetAttributes(answered(r)...)
	}
	s.span.End()
}
