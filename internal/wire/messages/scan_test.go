package messages

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
		`{"id":"m1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"a \"b\"\n"},{"type":"tool_use","id":"t","name":"f","input":{"a":[1]}},{"type":"thinking","thinking":"h","signature":"s"}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":3,"cache_creation_input_tokens":0,"cache_read_input_tokens":1,"output_tokens":4,"service_tier":"standard","cache_creation":{"ephemeral_1h_input_tokens":1}}}`,
		`{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"x"},"usage":{"output_tokens":2}}`,
		`{"type":"message_start","message":{"id":"m","content":[]},"content_block":{"type":"text","text":""}}`,
	} {
		scanned[wireMessage](t, seed)
		scanned[wireEvent](t, seed)
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
