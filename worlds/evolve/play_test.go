package evolve

import (
	"encoding/json"
	"strings"
	"testing"

	"parley/world"
)

// TestReadPrompt checks how the prompt is taken from the answer of a breeder.
func TestReadPrompt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ json, want string }{
		{`{"prompt": "  Think well.\n"}`, "Think well."},
		{`{"prompt": "one two three four five six"}`, "one two three four"},
		{`{"prompt": "first line here\nsecond line"}`, "first line here"},
		{`{"prompt": "` + strings.Repeat("x", 40) + `"}`, strings.Repeat("x", 20)},
		{`{"prompt": null}`, ""}, {`{}`, ""}, {`[]`, ""}, {``, ""},
	} {
		if got := readPrompt(world.Reply{JSON: json.RawMessage(c.json)}, 20); got != c.want {
			t.Errorf("%s: %q, want %q", c.json, got, c.want)
		}
	}
	if got := readPrompt(world.Reply{Failed: "timeout", JSON: json.RawMessage(`{"prompt":"x"}`)}, 20); got != "" {
		t.Errorf("a failure is the prompt %q", got)
	}
}
