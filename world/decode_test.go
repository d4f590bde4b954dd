package world_test

import (
	"encoding/json"
	"errors"
	"testing"

	"parley/world"
)

// TestDecodeStrict checks what errors say: the names that are allowed are those of the object, not of one inside it.
func TestDecodeStrict(t *testing.T) {
	t.Parallel()
	type outer struct {
		Inner struct {
			Turns int `json:"turns"`
		} `json:"inner"`
		Rounds int `json:"rounds"`
	}
	for text, want := range map[string]string{
		`{"rounds":1,"inner":{"turns":2}}`: "",
		`{"round":1}`:                      `unknown field "round"; did you mean rounds? want one of inner, rounds`,
		`{"colour":1} more`:                `unknown field "colour"; want one of inner, rounds`,
		`{"inner":{"turn":2}}`:             `unknown field "turn"`,
		`{"inner":{"turns":"x"}}`:          "inner.turns: found string, want int",
		`[]`:                               "found array, want object",
	} {
		got := ""
		err := world.DecodeStrict([]byte(text), &outer{})
		if err != nil {
			got = err.Error()
		}
		if _, typed := errors.AsType[*json.UnmarshalTypeError](err); got != want || typed != (want == "inner.turns: found string, want int" || text == "[]") {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
