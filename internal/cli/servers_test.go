package cli

import (
	"strings"
	"testing"

	"parley/internal/cli/exit"
)

// TestDocumentedServers checks the plan of every server in docs/how-to/servers.md.
func TestDocumentedServers(t *testing.T) {
	t.Parallel()
	sequential(t)
	seen := 0
	for i, block := range strings.Split(read(t, "../../docs/how-to/servers.md"), "```") {
		entry, ok := strings.CutPrefix(block, "yaml\n")
		if i%2 == 0 || !ok {
			continue
		}
		seen++
		plan := write(t, "plan.yaml", "kind: secrets\nepisodes: 1\nlineup: {first: player, second: player}\n"+entry)
		if got := parley(t, State{}, "check", plan); got.code != exit.OK {
			t.Errorf("%s\n%s", entry, got.stderr)
		}
	}
	if seen < 9 {
		t.Errorf("%d plans", seen)
	}
}
