package anthropic

import (
	"testing"

	"parley/internal/ask/wire/wiretest"
)

// TestScanIsUnmarshal checks that what Scan reads is what json.Unmarshal reads, for answers and for
// answers with a wrong byte.
func TestScanIsUnmarshal(t *testing.T) {
	t.Parallel()
	for _, seed := range []string{
		`{"id":"m1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"a \"b\"\n"},{"type":"tool_use","id":"t","name":"f","input":{"a":[1]}},{"type":"thinking","thinking":"h","signature":"s"}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":3,"cache_creation_input_tokens":0,"cache_read_input_tokens":1,"output_tokens":4,"service_tier":"standard","cache_creation":{"ephemeral_1h_input_tokens":1},"output_tokens_details":{"thinking_tokens":2}}}`,
		`{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"x"},"usage":{"output_tokens":2}}`,
		`{"type":"message_start","message":{"id":"m","content":[]},"content_block":{"type":"text","text":""}}`,
	} {
		wiretest.Scan[wireMessage](t, seed)
		wiretest.Scan[wireEvent](t, seed)
	}
}
