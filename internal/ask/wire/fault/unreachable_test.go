package fault

import (
	"net/http"
	"testing"

	"parley/llm"
)

// TestUnreachable distinguishes a server that is down or not ready from one that explains why it does
// not answer.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name               string
		status             int
		body               string
		unreachable, idles bool // idles: certainly nothing was done
	}{
		{"llama.cpp loads", 503, `{"error":{"message":"Loading model","type":"unavailable_error","code":503}}`, true, true},
		{"a model is loading", 503, `{"error":"Model gpt2 is currently loading","estimated_time":20}`, true, true},
		{"nothing", 503, ``, true, true},
		{"a word", 503, `Service Unavailable`, true, true},
		{"fastapi's word", 503, `{"detail":"Service Unavailable"}`, true, true},
		{"nginx", 502, `<html><head><title>502 Bad Gateway</title></head></html>`, true, false},
		{"nginx gives up", 504, `<html><head><title>504 Gateway Time-out</title></head></html>`, true, false},
		{"cloudflare", 521, `error code: 521`, true, false},
		{"openai slow down", 503, `{"error":{"message":"Slow Down","type":"server_error"}}`, false, false},
		{"gemini overloaded", 503, `[{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}]`, false, false},
		{"anthropic timeout", 504, `{"type":"error","error":{"type":"timeout_error","message":"x"}}`, false, false},
		{"a fault of its own", 500, ``, false, false},
		{"anthropic overloaded", 529, ``, false, false},
		{"not there", 404, `loading model`, false, false},
	} {
		e := Classify(c.status, http.Header{}, []byte(c.body))
		if e.Unreachable != c.unreachable || e.Unserved() != c.idles {
			t.Errorf("%s: unreachable is %v, unserved %v", c.name, e.Unreachable, e.Unserved())
		}
	}
	said := Classify(503, http.Header{"X-Should-Retry": {"false"}}, nil)
	if said.Unreachable || said.Kind != llm.KindOverloaded {
		t.Errorf("a server that says not to try again: %+v", said)
	}
}
