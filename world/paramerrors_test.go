package world_test

import (
	"errors"
	"math"
	"testing"

	"parley/world"
)

// TestParamErrors: every check says what is allowed, and reports nothing that is right.
func TestParamErrors(t *testing.T) {
	t.Parallel()
	c := world.ParamErrors{Kind: "duel"}
	c.IntRange("fine", 2, 1, 3)
	c.Between("fine", 0, 0, 1)
	c.OneOf("fine", "a", []string{"a"})
	c.Each("fine", []string{"a", "b"}, []string{"a", "b"})
	c.Braces("fine", "{x} {{y}}", "{x}")
	c.Add(nil)
	if err := c.Err(); err != nil {
		t.Fatal(err)
	}
	c.IntRange("rounds", math.MinInt, 1, 3)
	c.IntRange("calls", -1, 0, math.MaxInt32)
	c.Between("part", math.NaN(), 0, 1)
	c.OneOf("mode", "x", []string{"a", "b"})
	c.Each("parts", []string{"a", "z", "a"}, []string{"a"})
	c.Braces("ask", "{{x}}", "{x}")
	c.Addf("file", "%q %w", "f", world.ErrUnread)
	const want = `duel: params.rounds: -9223372036854775808: want 1 to 3
duel: params.calls: -1: want 0 or more
duel: params.part: NaN: want 0 to 1
duel: params.mode: "x": want one of a, b
duel: params.parts[1]: "z": want one of a
duel: params.parts[2]: "a" is listed twice
duel: params.ask: {{x}} is in double braces: write {x}
duel: params.file: "f" was not read`
	if err := c.Err(); err.Error() != want || !errors.Is(err, world.ErrUnread) {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}
