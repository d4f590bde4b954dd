package responses

import (
	"testing"

	"parley/internal/ask/wire/wiretest"
)

// TestScanIsUnmarshal checks that what Scan reads is what json.Unmarshal reads, for answers and for
// answers with a wrong byte.
func TestScanIsUnmarshal(t *testing.T) {
	t.Parallel()
	for _, seed := range []string{
		`{"id":"r1","object":"response","status":"completed","incomplete_details":null,"model":"m","output":[{"id":"i","type":"message","content":[{"type":"output_text","annotations":[],"logprobs":[{"token":"a","logprob":-1}],"text":"a \"b\"\n"}]},{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"reasoning","id":"rs","summary":[]}],"usage":{"input_tokens":3,"output_tokens":4,"input_tokens_details":{"cached_tokens":1}}}`,
		`{"status":"incomplete","incomplete_details":{"reason":"x"},"output":[]}`,
	} {
		wiretest.Scan[wireResponse](t, seed)
	}
}
