package fault

import (
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"parley/llm"
)

// TestClassify lists errors of real providers.
func TestClassify(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		status int
		body   string
		want   llm.Error
	}{
		{"openai 429", 429, `{"error":{"message":"Rate limit reached for gpt-5 in organization org-x on tokens per min (TPM)","type":"tokens","param":null,"code":"rate_limit_exceeded"}}`, llm.Error{Kind: llm.KindRateLimited, Code: "rate_limit_exceeded", Status: 429}},
		{"openai quota", 429, `{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}`, llm.Error{Kind: llm.KindQuota, Code: "insufficient_quota", Status: 429}},
		{"openai flex", 429, `{"error":{"message":"Resource Unavailable","type":"rate_limit_error","code":null}}`, llm.Error{Kind: llm.KindOverloaded, Code: "rate_limit_error", Status: 429}},
		{"openai slow down", 503, `{"error":{"message":"Slow Down","type":"server_error"}}`, llm.Error{Kind: llm.KindOverloaded, Code: "server_error", Status: 503}},
		{"openai key", 401, `{"error":{"message":"Incorrect API key provided","type":"invalid_request_error","code":"invalid_api_key"}}`, llm.Error{Kind: llm.KindAuth, Code: "invalid_api_key", Status: 401}},
		{"openai context", 400, `{"error":{"message":"This model's maximum context length is 8192 tokens.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`, llm.Error{Kind: llm.KindTooLong, Code: "context_length_exceeded", Status: 400}},
		{"openai prompt refused", 400, `{"error":{"message":"Invalid prompt: limited access","type":"invalid_request_error","code":"invalid_prompt"}}`, llm.Error{Kind: llm.KindRefused, Code: "invalid_prompt", Status: 400}},
		{"openai parameter", 400, `{"error":{"message":"Unsupported parameter: 'temperature'","type":"invalid_request_error","param":"temperature","code":"unsupported_parameter"}}`, llm.Error{Kind: llm.KindBadRequest, Code: "unsupported_parameter", Status: 400}},
		{"openai model", 404, `{"error":{"message":"The model does not exist","type":"invalid_request_error","code":"model_not_found"}}`, llm.Error{Kind: llm.KindBadRequest, Code: "model_not_found", Status: 404}},
		{"gemini cache", 403, `{"error":{"code":403,"message":"CachedContent not found (or permission denied)","status":"PERMISSION_DENIED"}}`, llm.Error{Kind: llm.KindAuth, Code: "PERMISSION_DENIED", Status: 403}},
		{"vertex cache", 404, `{"error":{"code":404,"message":"Not found: cached content metadata for 7.","status":"NOT_FOUND"}}`, llm.Error{Kind: llm.KindAuth, Code: "NOT_FOUND", Status: 404}},
		{"anthropic 529", 529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_9"}`, llm.Error{Kind: llm.KindOverloaded, Code: "overloaded_error", Status: 529, RequestID: "req_9"}},
		{"anthropic 429", 429, `{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your organization's rate limit"}}`, llm.Error{Kind: llm.KindRateLimited, Code: "rate_limit_error", Status: 429}},
		{"anthropic credit", 400, `{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API."}}`, llm.Error{Kind: llm.KindQuota, Code: "invalid_request_error", Status: 400}},
		{"anthropic billing", 402, `{"type":"error","error":{"type":"billing_error","message":"x"}}`, llm.Error{Kind: llm.KindQuota, Code: "billing_error", Status: 402}},
		{"anthropic context", 400, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 250000 tokens > 200000 maximum"}}`, llm.Error{Kind: llm.KindTooLong, Code: "invalid_request_error", Status: 400}},
		{"anthropic both", 400, "{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"input length and `max_tokens` exceed context limit: 1 + 2 > 2\"}}", llm.Error{Kind: llm.KindTooLong, Code: "invalid_request_error", Status: 400}},
		{"anthropic size", 413, `{"type":"error","error":{"type":"request_too_large","message":"x"}}`, llm.Error{Kind: llm.KindTooLong, Code: "request_too_large", Status: 413}},
		{"anthropic timeout", 504, `{"type":"error","error":{"type":"timeout_error","message":"x"}}`, llm.Error{Kind: llm.KindTimeout, Code: "timeout_error", Status: 504}},
		{"anthropic conflict", 409, `{"type":"error","error":{"type":"conflict_error","message":"x"}}`, llm.Error{Kind: llm.KindServer, Code: "conflict_error", Status: 409}},
		{"anthropic event", 0, `{"type":"error","error":{"type":"api_error","message":"Internal server error"}}`, llm.Error{Kind: llm.KindServer, Code: "api_error"}},
		{"gemini", 429, `[{"error":{"code":429,"message":"You exceeded your current quota","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure"},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"13.5s"}]}}]`, llm.Error{Kind: llm.KindRateLimited, Code: "RESOURCE_EXHAUSTED", Status: 429, RetryAfter: 13500 * time.Millisecond}},
		{"gemini credits", 429, `{"error":{"code":429,"message":"Your prepayment credits are depleted.","status":"RESOURCE_EXHAUSTED"}}`, llm.Error{Kind: llm.KindQuota, Code: "RESOURCE_EXHAUSTED", Status: 429, Message: "Your prepayment credits are depleted."}},
		{"gemini overloaded", 503, `[{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}]`, llm.Error{Kind: llm.KindOverloaded, Code: "UNAVAILABLE", Status: 503}},
		{"gemini key", 400, `[{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}]`, llm.Error{Kind: llm.KindAuth, Code: "INVALID_ARGUMENT", Status: 400}},
		{"azure filter", 400, `{"error":{"message":"The response was filtered due to the prompt triggering Azure OpenAI's content management policy.","type":null,"param":"prompt","code":"content_filter","status":400,"innererror":{"code":"ResponsibleAIPolicyViolation","content_filter_result":{"hate":{"filtered":true,"severity":"high"}}}}}`, llm.Error{Kind: llm.KindRefused, Code: "content_filter", Status: 400}},
		{"azure 429", 429, `{"error":{"code":"429","message":"Requests to the ChatCompletions_Create Operation under Azure OpenAI API version 2024-10-21 have exceeded token rate limit of your current OpenAI S0 pricing tier. Please retry after 6 seconds."}}`, llm.Error{Kind: llm.KindRateLimited, Status: 429}},
		{"azure key", 401, `{"error":{"code":"401","message":"Access denied due to invalid subscription key or wrong API endpoint."}}`, llm.Error{Kind: llm.KindAuth, Status: 401}},
		{"azure deployment", 404, `{"error":{"code":"DeploymentNotFound","message":"The API deployment for this resource does not exist."}}`, llm.Error{Kind: llm.KindBadRequest, Code: "DeploymentNotFound", Status: 404}},
		{"bedrock long", 400, `{"message":"Input is too long for requested model."}`, llm.Error{Kind: llm.KindTooLong, Status: 400}},
		{"vertex token", 401, `{"error":{"code":401,"message":"Request had invalid authentication credentials.","status":"UNAUTHENTICATED"}}`, llm.Error{Kind: llm.KindAuth, Code: "UNAUTHENTICATED", Status: 401}},
		{"vllm", 400, `{"object":"error","message":"This model's maximum context length is 4096 tokens.","type":"BadRequestError","param":null,"code":400}`, llm.Error{Kind: llm.KindTooLong, Code: "BadRequestError", Status: 400}},
		{"vllm new", 400, `{"error":{"message":"nope","type":"BadRequestError","param":null,"code":400}}`, llm.Error{Kind: llm.KindBadRequest, Code: "BadRequestError", Status: 400}},
		{"ollama", 404, `{"error":"model 'x' not found"}`, llm.Error{Kind: llm.KindBadRequest, Status: 404}},
		{"ollama 500", 500, `{"error":"invalid character 'x' looking for beginning of value"}`, llm.Error{Kind: llm.KindBadRequest, Status: 500}},
		{"mistral", 422, `{"object":"error","message":{"detail":[{"type":"extra_forbidden","loc":["body","seed"]}]},"type":"invalid_request_error","code":null}`, llm.Error{Kind: llm.KindBadRequest, Code: "invalid_request_error", Status: 422}},
		{"mistral capacity", 429, `{"object":"error","message":"Service tier capacity exceeded for this model.","type":"service_tier_capacity_exceeded","code":"3505"}`, llm.Error{Kind: llm.KindOverloaded, Code: "service_tier_capacity_exceeded", Status: 429}},
		{"fastapi", 422, `{"detail":[{"loc":["body"],"msg":"field required"}]}`, llm.Error{Kind: llm.KindBadRequest, Status: 422}},
		{"deepseek", 402, `{"error":{"message":"Insufficient Balance","type":"unknown_error","code":"invalid_request_error"}}`, llm.Error{Kind: llm.KindQuota, Code: "invalid_request_error", Status: 402}},
		{"openrouter 200", 200, `{"error":{"code":402,"message":"Insufficient credits"}}`, llm.Error{Kind: llm.KindQuota, Status: 402}},
		{"408", 408, ``, llm.Error{Kind: llm.KindTimeout, Status: 408}},
		{"nothing", 0, ``, llm.Error{Kind: llm.KindServer}},
		{"text", 500, "upstream connect error\x1b[0m", llm.Error{Kind: llm.KindServer, Status: 500}},
	} {
		e := Classify(c.status, http.Header{}, []byte(c.body))
		if e.Kind != c.want.Kind || e.Code != c.want.Code || e.Status != c.want.Status || e.RetryAfter != c.want.RetryAfter || e.RequestID != c.want.RequestID {
			t.Errorf("%s: got %+v, want %+v", c.name, *e, c.want)
		}
		if e.Message == "" || e.Uncertain || strings.Contains(e.Message, "\x1b") {
			t.Errorf("%s: message %q, uncertain %v", c.name, e.Message, e.Uncertain)
		}
	}
}

func TestShouldRetry(t *testing.T) {
	t.Parallel()
	if e := Classify(429, http.Header{"X-Should-Retry": {"false"}}, nil); !e.Final {
		t.Error("false is not final")
	}
	if e := Classify(400, http.Header{"X-Should-Retry": {"true"}}, nil); !e.Kind.Retryable() {
		t.Errorf("true gives %s", e.Kind)
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	date := func(d time.Duration) string { return now.Add(d).Format(http.TimeFormat) }
	for _, c := range []struct {
		header map[string]string
		want   time.Duration
	}{
		{nil, 0},
		{map[string]string{"Retry-After": "7"}, 7 * time.Second},
		{map[string]string{"Retry-After": " 1.5 "}, 1500 * time.Millisecond},
		{map[string]string{"Retry-After": "2s"}, 2 * time.Second},
		{map[string]string{"Retry-After": "-5"}, 0},
		{map[string]string{"Retry-After": "0"}, 0},
		{map[string]string{"Retry-After": "NaN"}, 0},
		{map[string]string{"Retry-After": "1e300"}, 10 * time.Minute},
		{map[string]string{"Retry-After": "86400"}, 10 * time.Minute},
		{map[string]string{"Retry-After": "soon"}, 0},
		{map[string]string{"Retry-After": date(30 * time.Second)}, 30 * time.Second},
		{map[string]string{"Retry-After": date(-30 * time.Second)}, 0},
		// Our clock may be wrong if the server sends its own time.
		{map[string]string{"Retry-After": date(time.Hour + 30*time.Second), "Date": date(time.Hour)}, 30 * time.Second},
		{map[string]string{"Retry-After-Ms": "250", "Retry-After": "9"}, 250 * time.Millisecond},
		{map[string]string{"Retry-After-Ms": "-1", "Retry-After": "9"}, 9 * time.Second},
	} {
		h := http.Header{}
		for k, v := range c.header {
			h.Set(k, v)
		}
		if got := RetryAfter(h, now); got != c.want {
			t.Errorf("%v: got %v, want %v", c.header, got, c.want)
		}
	}
}

func TestRate(t *testing.T) {
	t.Parallel()
	w := func(limit, left float64, reset time.Duration) llm.Window {
		return llm.Window{Limit: limit, Remaining: left, Reset: reset, Known: true}
	}
	for _, c := range []struct {
		name   string
		header map[string]string
		want   *llm.Rate
	}{
		{"nothing", nil, nil},
		{"openai", map[string]string{
			"x-ratelimit-limit-requests": "500", "x-ratelimit-remaining-requests": "499", "x-ratelimit-reset-requests": "120ms",
			"x-ratelimit-limit-tokens": "30000", "x-ratelimit-remaining-tokens": "100", "x-ratelimit-reset-tokens": "6m0s",
		}, &llm.Rate{Requests: w(500, 499, 120*time.Millisecond), Tokens: w(30000, 100, 6*time.Minute)}},
		{"openai project", map[string]string{
			"x-ratelimit-limit-tokens": "30000", "x-ratelimit-remaining-tokens": "20000", "x-ratelimit-reset-tokens": "1s",
			"x-ratelimit-limit-project-tokens": "5000", "x-ratelimit-remaining-project-tokens": "10", "x-ratelimit-reset-project-tokens": "1m2.5s",
		}, &llm.Rate{Tokens: w(5000, 10, 62500*time.Millisecond)}},
		{"anthropic", map[string]string{
			"date":                               "Sun, 15 Nov 2026 12:00:00 GMT",
			"anthropic-ratelimit-requests-limit": "50", "anthropic-ratelimit-requests-remaining": "49", "anthropic-ratelimit-requests-reset": "2026-11-15T12:00:01Z",
			"anthropic-ratelimit-tokens-limit": "48000", "anthropic-ratelimit-tokens-remaining": "47000", "anthropic-ratelimit-tokens-reset": "2026-11-15T12:00:02Z",
			"anthropic-ratelimit-input-tokens-limit": "40000", "anthropic-ratelimit-input-tokens-remaining": "39000", "anthropic-ratelimit-input-tokens-reset": "2026-11-15T12:00:03Z",
			"anthropic-ratelimit-output-tokens-limit": "8000", "anthropic-ratelimit-output-tokens-remaining": "7000", "anthropic-ratelimit-output-tokens-reset": "2026-11-15T11:59:00Z",
		}, &llm.Rate{Requests: w(50, 49, time.Second), Tokens: w(48000, 47000, 2*time.Second), Input: w(40000, 39000, 3*time.Second), Output: w(8000, 7000, 0)}},
		{"together", map[string]string{"x-ratelimit-limit": "10", "x-ratelimit-remaining": "9", "x-ratelimit-reset": "1", "x-tokenlimit-limit": "3000", "x-tokenlimit-remaining": "2999"},
			&llm.Rate{Requests: w(10, 9, time.Second), Tokens: w(3000, 2999, time.Second)}},
		{"openrouter", map[string]string{"date": "Sun, 15 Nov 2026 12:00:00 GMT", "x-ratelimit-limit": "20", "x-ratelimit-remaining": "0", "x-ratelimit-reset": "1794744060000"},
			&llm.Rate{Requests: w(20, 0, time.Minute)}},
		{"nonsense", map[string]string{"x-ratelimit-limit-requests": "many", "x-ratelimit-remaining-requests": "1", "x-ratelimit-limit-tokens": "-5", "x-ratelimit-remaining-tokens": "1"}, nil},
		{"too much left", map[string]string{"x-ratelimit-limit-requests": "5", "x-ratelimit-remaining-requests": "99"}, &llm.Rate{Requests: w(5, 5, 0)}},
	} {
		h := http.Header{}
		for k, v := range c.header {
			h.Set(k, v)
		}
		got := Rate(h)
		if (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.want)
		}
	}
}

func FuzzHeader(f *testing.F) {
	f.Add("1.5", "6m0s", "2026-11-15T12:00:01Z", "1794744060000")
	f.Fuzz(func(t *testing.T, a, b, c, d string) {
		h := http.Header{
			"Retry-After": {a}, "Retry-After-Ms": {d}, "Date": {c},
			"X-Ratelimit-Limit-Tokens": {a}, "X-Ratelimit-Remaining-Tokens": {d}, "X-Ratelimit-Reset-Tokens": {b},
			"X-Ratelimit-Limit": {d}, "X-Ratelimit-Remaining": {a}, "X-Ratelimit-Reset": {b},
		}
		check := func(h http.Header) {
			if w := RetryAfter(h, time.Now()); w < 0 || w > maxRetryAfter {
				t.Errorf("RetryAfter(%q) = %v", h, w)
			}
			r := Rate(h)
			if r == nil {
				return
			}
			for _, w := range []llm.Window{r.Requests, r.Tokens, r.Input, r.Output} {
				if !(w.Limit >= 0 && w.Remaining >= 0 && w.Remaining <= w.Limit) || w.Reset < 0 || w.Reset > maxReset {
					t.Errorf("Rate(%q) = %+v", h, w)
				}
			}
		}
		check(h)
		h["Anthropic-Ratelimit-Requests-Limit"], h["Anthropic-Ratelimit-Requests-Remaining"] = []string{a}, []string{d}
		h["Anthropic-Ratelimit-Requests-Reset"] = []string{c}
		check(h)
	})
}

func FuzzClassify(f *testing.F) {
	f.Add(429, []byte(`[{"error":{"code":429,"details":[{"@type":"x.RetryInfo","retryDelay":"1s"}]}}]`))
	f.Add(500, []byte(`<html><title>x</title>`))
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		e := Classify(status, http.Header{"Location": {string(body)}}, body)
		if e.Kind == "" || e.Message == "" || len(e.Message) > MaxMessage+8 || !utf8.ValidString(e.Message) || strings.ContainsAny(e.Message, "\x1b\n\x00") {
			t.Errorf("Classify(%d, %q) = %+v", status, body, e)
		}
		LooksJSON(body, "text/plain")
	})
}

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
