package responses

import (
	"encoding/json"
	"reflect"
	"testing"

	"parley/internal/wire/body"
)

// TestScanIsUnmarshal checks that what Scan reads is what json.Unmarshal reads, for answers and for
// answers with a wrong byte.
func TestScanIsUnmarshal(t *testing.T) {
	t.Parallel()
	for _, seed := range []string{
		`{"id":"r1","object":"response","status":"completed","incomplete_details":null,"model":"m","output":[{"id":"i","type":"message","content":[{"type":"output_text","annotations":[],"logprobs":[{"token":"a","logprob":-1}],"text":"a \"b\"\n"}]},{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"reasoning","id":"rs","summary":[]}],"usage":{"input_tokens":3,"output_tokens":4,"input_tokens_details":{"cached_tokens":1}}}`,
		`{"status":"incomplete","incomplete_details":{"reason":"x"},"output":[]}`,
	} {
		scanned[wireResponse](t, seed)
	}
}

func scanned[T any, P body.Scanner[T]](t *testing.T, seed string) {
	t.Helper()
	for i := range len(seed) {
		for _, c := range []string{"", "\\", `"`, "{", "}", "[", "]", ",", "0", "-", "A", "n", "\xff", " ", "null", "1e2"} {
			b := []byte(seed[:i] + c + seed[i+1:])
			got, want := new(T), new(T)
			if !P(got).Scan(b) {
				continue
			}
			if err := json.Unmarshal(b, want); err != nil || !reflect.DeepEqual(got, want) {
				t.Fatalf("Scan(%s) = %+v; json.Unmarshal: %+v, %v", b, got, want, err)
			}
		}
	}
}
