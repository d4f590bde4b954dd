package world_test

import (
	"encoding/json"
	"errors"
	"math"
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
		`{"inner":{"turns":"x"}}`:          "inner.turns: found string, want whole number",
		`[]`:                               "found array, want object",
	} {
		got := ""
		err := world.DecodeStrict([]byte(text), &outer{})
		if err != nil {
			got = err.Error()
		}
		if _, typed := errors.AsType[*json.UnmarshalTypeError](err); got != want || typed != (want == "inner.turns: found string, want whole number" || text == "[]") {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// TestParamErrors: every check says what is allowed, and reports nothing that is right.
func TestParamErrors(t *testing.T) {
	t.Parallel()
	c := world.ParamErrors{Kind: "duel"}
	c.IntRange("fine", 2, 1, 3)
	c.OneOf("fine", "a", []string{"a"})
	c.Each("fine", []string{"a", "b"}, []string{"a", "b"})
	c.Braces("fine", "{x} {{y}}", "{x}")
	c.Add(nil)
	if err := c.Err(); err != nil {
		t.Fatal(err)
	}
	c.IntRange("rounds", math.MinInt, 1, 3)
	c.OneOf("mode", "x", []string{"a", "b"})
	c.Each("parts", []string{"a", "z", "a"}, []string{"a"})
	c.Braces("ask", "{{x}}", "{x}")
	c.Addf("file", "%q %w", "f", world.ErrUnread)
	const want = `duel: params.rounds: -9223372036854775808: want 1 to 3
duel: params.mode: "x": want one of a, b
duel: params.parts[1]: "z": want one of a
duel: params.parts[2]: "a" is listed twice
duel: params.ask: {{x}} is in double braces: write {x}
duel: params.file: "f" was not read`
	if err := c.Err(); err.Error() != want || !errors.Is(err, world.ErrUnread) {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

// TestDuration: a time is written as people write it, and read back equal.
func TestDuration(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"5m": "5m", "90s": "1m30s", "24h": "24h", "1h0m30s": "1h0m30s", "0s": "0s", "10m": "10m", "20h10m": "20h10m", "50ms": "50ms",
		"300": "", "-5m": "", "": "", "soon": "",
	} {
		var d, again world.Duration
		err := d.UnmarshalText([]byte(text))
		if (err == nil) != (want != "") {
			t.Errorf("%q: %v", text, err)
		}
		if err != nil {
			continue
		}
		got, err := json.Marshal(d)
		if bad := json.Unmarshal(got, &again); err != nil || bad != nil || string(got) != `"`+want+`"` || again != d {
			t.Errorf("%q: %s, %v, %v, %v", text, got, again, err, bad)
		}
	}
}
