package openai

import (
	"testing"

	"parley/internal/ask/wire/wiretest"
)

// TestScanIsUnmarshal checks that what Scan reads is what json.Unmarshal reads, for answers and for
// answers with a wrong byte.
func TestScanIsUnmarshal(t *testing.T) {
	t.Parallel()
	for _, seed := range []string{
		`{"id":"c1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"a \"b\" \u00e9\n","refusal":null,"tool_calls":[{"id":"x","function":{"name":"f","arguments":"{}"}}]},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7,"prompt_tokens_details":{"cached_tokens":1,"reasoning_tokens":8},"completion_tokens_details":{"reasoning_tokens":2,"cached_tokens":9}}}`,
		`{"model":"m","choices":[{"index":0,"delta":{"content":[{"text":"x"}],"reasoning":"y"},"token_ids":[1],"meta_info":{"weight_version":2}}],"metadata":{"weight_version":"3"},"x_groq":{"usage":{"prompt_tokens":1}}}`,
		`{"choices":[{"index":1}],"choices":[{"index":2}],"usage":{"prompt_tokens":1},"usage":{"total_tokens":2}}`,
	} {
		wiretest.Scan[wireResponse](t, seed)
	}
}
