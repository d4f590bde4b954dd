package trace

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"parley/internal/provider"
	"parley/internal/serve/gateway/format"
	"parley/llm"
)

// TestSpans checks that a span has what the conventions want, and no text of the call.
func TestSpans(t *testing.T) {
	t.Parallel()
	to := tracetest.NewInMemoryExporter()
	tr := newTracer("1", sdk.WithSyncer(to))
	call, err := format.Decode(format.Chat, []byte(`{"model":"m","max_tokens":9,"temperature":0.5,"stream":true,"n":2,"messages":[{"role":"user","content":"a secret"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	p := provider.Provider{Name: "gemini", BaseURL: "https://llm.example.com:8443/v1"}
	parent := http.Header{"Traceparent": {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}}
	tr.Start(parent, format.Chat, p, "s", call).End(&llm.Response{
		Text: "another secret", Model: "m-2", ID: "id", Finish: llm.FinishStop, Usage: llm.Usage{Input: 7, Output: 3},
		Metadata: llm.Metadata{FirstByte: time.Second, Attempts: 3},
	}, nil)
	tr.Start(nil, format.Embeddings, p, "s", call).End(nil, &llm.Error{Kind: llm.KindOverloaded, Message: "a secret"})
	spans := to.GetSpans()
	if len(spans) != 2 {
		t.Fatalf("%d spans", len(spans))
	}
	got := map[string]string{}
	for _, s := range spans {
		for _, a := range s.Attributes {
			got[s.Name+" "+string(a.Key)] = a.Value.String()
			if strings.Contains(a.Value.String(), "secret") {
				t.Errorf("%s: %s", a.Key, a.Value.String())
			}
		}
	}
	for key, want := range map[string]string{
		"chat m gen_ai.operation.name": "chat", "chat m gen_ai.provider.name": "gcp.gemini", "chat m gen_ai.conversation.id": "s",
		"chat m gen_ai.request.model": "m", "chat m gen_ai.request.max_tokens": "9", "chat m gen_ai.request.temperature": "0.5",
		"chat m gen_ai.request.choice.count": "2", "chat m gen_ai.request.stream": "true", "chat m gen_ai.response.model": "m-2",
		"chat m gen_ai.response.finish_reasons": `["stop"]`, "chat m gen_ai.usage.input_tokens": "7", "chat m gen_ai.usage.output_tokens": "3",
		"chat m server.address": "llm.example.com", "chat m server.port": "8443", "chat m parley.retries": "2", "embeddings m error.type": "overloaded",
	} {
		if got[key] != want {
			t.Errorf("%s is %q, want %q", key, got[key], want)
		}
	}
	if spans[0].Parent.TraceID().String() != "0af7651916cd43dd8448eb211c80319c" || spans[1].Status.Code != codes.Error {
		t.Errorf("%+v", spans)
	}
	if err := tr.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestNone checks that a nil tracer does nothing.
func TestNone(t *testing.T) {
	t.Parallel()
	var none *Tracer
	none.Start(nil, format.Chat, provider.Provider{}, "s", &format.Call{}).End(nil, nil)
	if err := none.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
