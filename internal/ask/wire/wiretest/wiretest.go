// Package wiretest has what the tests of the wire formats share.
//
// It is for tests only.
package wiretest

import (
	"encoding/json"
	"reflect"
	"testing"

	"parley/internal/ask/wire/request"
	"parley/internal/kit/sse"
	"parley/llm"
)

// Scan checks that what a Decoder reads itself is what json.Unmarshal reads, for an answer and for the answer with
// a wrong byte at every position.
func Scan[T any](t *testing.T, d request.Decoder[T], answer string) {
	t.Helper()
	for i := range len(answer) {
		for _, c := range []string{"", "\\", `"`, "{", "}", "[", "]", ",", "0", "-", "A", "n", "\xff", " ", "null", "1e2"} {
			b := []byte(answer[:i] + c + answer[i+1:])
			got, want := new(T), new(T)
			if !d.Scan(b, got) {
				continue
			}
			if err := json.Unmarshal(b, want); err != nil || !reflect.DeepEqual(got, want) {
				t.Fatalf("Scan(%s) = %+v; json.Unmarshal: %+v, %v", b, got, want, err)
			}
		}
	}
}

// Assembler assembles an answer from the events of a stream.
type Assembler interface {
	Event(sse.Event) (done bool, err error)
	Response() (*llm.Response, error)
}

// Assemble gives events to a until one is the last.
func Assemble(a Assembler, events ...sse.Event) (*llm.Response, error) {
	for _, e := range events {
		done, err := a.Event(e)
		if err != nil {
			return nil, err
		}
		if done {
			break
		}
	}
	return a.Response()
}

// Data returns events without names.
func Data(texts ...string) []sse.Event {
	events := make([]sse.Event, len(texts))
	for i, text := range texts {
		events[i].Data = []byte(text)
	}
	return events
}
