package oracle

import (
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	metricscollector "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protopath"
	"google.golang.org/protobuf/reflect/protorange"
	"google.golang.org/protobuf/reflect/protoreflect"

	"parley/internal/serve/gateway"
	"parley/internal/serve/telemetry"
	"parley/journal"
)

// collected is a collector that decodes requests with the types of OpenTelemetry.
type collected struct {
	mu      sync.Mutex
	spans   []*otlp.Span
	metrics map[string]*metrics.Metric // the last ones, by name
	wrong   []string
}

func (c *collected) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	b, err := io.ReadAll(r.Body)
	var spans collector.ExportTraceServiceRequest
	var measured metricscollector.ExportMetricsServiceRequest
	var req proto.Message = &spans
	if r.URL.Path == "/v1/metrics" {
		req = &measured
	}
	if err == nil {
		err = proto.Unmarshal(b, req)
	}
	unknown := 0
	_ = protorange.Range(req.ProtoReflect(), func(v protopath.Values) error {
		if m, ok := v.Index(-1).Value.Interface().(protoreflect.Message); ok {
			unknown += len(m.GetUnknown())
		}
		return nil
	})
	if err != nil || unknown > 0 || r.URL.Path != "/v1/metrics" && r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" {
		c.wrong = append(c.wrong, fmt.Sprint(r.URL.Path, " of ", r.Header.Get("Content-Type"), ", ", unknown, " unknown bytes, ", err))
	}
	for _, of := range spans.ResourceSpans {
		for _, in := range of.ScopeSpans {
			c.spans = append(c.spans, in.Spans...)
		}
	}
	for _, of := range measured.ResourceMetrics {
		for _, in := range of.ScopeMetrics {
			for _, m := range in.Metrics {
				c.metrics[m.Name] = m
			}
		}
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
}

// TestTelemetry has a collector read the spans and metrics of calls through a gateway, over HTTP.
func TestTelemetry(t *testing.T) {
	to := &collected{metrics: map[string]*metrics.Metric{}}
	srv := httptest.NewServer(to)
	defer srv.Close()
	env := func(name string) (string, bool) { return srv.URL, name == "OTEL_EXPORTER_OTLP_ENDPOINT" }
	exporter, err := telemetry.Open(t.Context(), env, "parley-gateway", "test", func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	url := startGateway(t, startSim(t), &journal.Memory{}, func(c *gateway.Config) { c.Telemetry = exporter }, "openai")
	const parent = "b7ad6b7169203331"
	for _, body := range []string{
		`{"model":"m","messages":[{"role":"user","content":"a secret question"}]}`,
		`{"model":"m","stream":true,"messages":[{"role":"user","content":"a secret question"}]}`,
		`{"model":"m","messages":[]}`, // refused
	} {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/v1/sessions/s/chat/completions", strings.NewReader(body))
		req.Header.Set("Traceparent", "00-0af7651916cd43dd8448eb211c80319c-"+parent+"-01")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		res.Body.Close()
	}
	if err := exporter.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	checkMetrics(t, to.metrics)
	if len(to.spans) != 3 || len(to.wrong) > 0 {
		t.Fatalf("%d spans, %v", len(to.spans), to.wrong)
	}
	slices.SortFunc(to.spans, func(a, b *otlp.Span) int { return int(a.StartTimeUnixNano) - int(b.StartTimeUnixNano) })
	for i, s := range to.spans {
		streamed := map[bool]string{true: "true", false: "false"}[i == 1]
		if s.Name != "chat m" || hex.EncodeToString(s.ParentSpanId) != parent || valueOf(s, "gen_ai.conversation.id") != "s" || valueOf(s, "gen_ai.request.stream") != streamed {
			t.Errorf("%d: %v", i, s)
		}
		if strings.Contains(s.String(), "secret") {
			t.Errorf("a span has the text of messages: %v", s)
		}
		if failed := s.Status.GetCode() == otlp.Status_STATUS_CODE_ERROR; failed != (i == 2) || failed != (valueOf(s, "error.type") != "") || failed == (valueOf(s, "gen_ai.usage.output_tokens") != "") {
			t.Errorf("%d: %v", i, s)
		}
	}
}

// checkMetrics checks the metrics of two calls that were answered and one that was refused.
func checkMetrics(t *testing.T, all map[string]*metrics.Metric) {
	t.Helper()
	duration, tokens := all["gen_ai.client.operation.duration"], all["gen_ai.client.token.usage"]
	if duration.GetUnit() != "s" || tokens.GetUnit() != "{token}" || len(duration.GetHistogram().GetDataPoints()) != 2 || len(tokens.GetHistogram().GetDataPoints()) != 2 {
		t.Fatalf("%v %v", duration, tokens)
	}
	for _, p := range append(duration.GetHistogram().GetDataPoints(), tokens.GetHistogram().GetDataPoints()...) {
		want := uint64(2)
		if valueOf(p, "error.type") != "" {
			want = 1
		}
		var sum uint64
		for _, n := range p.BucketCounts {
			sum += n
		}
		if p.Count != want || sum != want || p.GetSum() <= 0 || len(p.BucketCounts) != len(p.ExplicitBounds)+1 || valueOf(p, "gen_ai.operation.name") != "chat" || valueOf(p, "gen_ai.request.model") != "m" || p.StartTimeUnixNano >= p.TimeUnixNano {
			t.Errorf("%v", p)
		}
	}
	attempts, running := all["parley_gateway_attempts_total"].GetSum(), all["go_goroutines"].GetGauge()
	if !attempts.GetIsMonotonic() || attempts.GetAggregationTemporality() != metrics.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE || len(attempts.GetDataPoints()) != 1 || attempts.DataPoints[0].GetAsDouble() < 2 || running.GetDataPoints()[0].GetAsDouble() < 1 {
		t.Errorf("%v %v", attempts, running)
	}
}

// valueOf returns an attribute, or "".
func valueOf(s interface{ GetAttributes() []*common.KeyValue }, key string) string {
	for _, a := range s.GetAttributes() {
		if a.Key == key {
			_, value, _ := strings.Cut(a.Value.String(), ":")
			return strings.Trim(value, `"`)
		}
	}
	return ""
}
