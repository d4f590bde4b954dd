package secrets

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/world"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestPromptsGolden shows what players are told, word by word: a change of it is a change
// of the game, and needs a new Version of the kind.
func TestPromptsGolden(t *testing.T) {
	t.Parallel()
	p := script(t, `{"messages": 5, "words": ["tiger", "zebra"], "persona": {"second": "You are in a hurry."}}`, 0, func(turn int, own, _ string) world.Reply {
		return []world.Reply{say("Good morning."), say("What is yours?"), failed(), say("It is " + own + "."), say("Thank you.")}[turn]
	})
	var b strings.Builder
	for turn, ms := range p.prompts {
		fmt.Fprintf(&b, "=== message %d\n", turn+1)
		for _, m := range ms {
			fmt.Fprintf(&b, "--- %s\n%s\n", m.Role, m.Text())
		}
	}
	path := filepath.Join("testdata", "prompts.golden")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil || string(want) != b.String() {
		t.Errorf("prompts are not those of %s (%v): run with -update and look at the difference\n%s", path, err, b.String())
	}
}
