package oracle

import (
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"parley/internal/serve/gateway"
	"parley/internal/serve/gateway/trace"
	"parley/journal"
)

// collected is a collector of traces that decodes requests with the types of OpenTelemetry.
type collected struct {
	mu    sync.Mutex
	spans []*otlp.Span
	wrong []string
}

func (c *collected) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	b, err := io.ReadAll(r.Body)
	var req collector.ExportTraceServiceRequest
	if err == nil {
		err = proto.Unmarshal(b, &req)
	}
	if err != nil || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" {
		c.wrong = append(c.wrong, r.URL.Path+" of "+r.Header.Get("Content-Type"))
	}
	for _, of := range req.ResourceSpans {
		for _, in := range of.ScopeSpans {
			c.spans = append(c.spans, in.Spans...)
		}
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
}

// TestTraces has a collector read the spans of calls through a gateway, over HTTP.
func TestTraces(t *testing.T) {
	to := &collected{}
	srv := httptest.NewServer(to)
	defer srv.Close()
	env := func(name string) (string, bool) { return srv.URL, name == "OTEL_EXPORTER_OTLP_ENDPOINT" }
	tracer, err := trace.Open(t.Context(), env, "parley-gateway", "test")
	if err != nil {
		t.Fatal(err)
	}
	url := startGateway(t, startSim(t), &journal.Memory{}, func(c *gateway.Config) { c.Tracer = tracer }, "openai")
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
	if err := tracer.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
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

// valueOf returns an attribute of a span, or "".
func valueOf(s *otlp.Span, key string) string {
	for _, a := range s.Attributes {
		if a.Key == key {
			_, value, _ := strings.Cut(a.Value.String(), ":")
			return strings.Trim(value, `"`)
		}
	}
	return ""
}
