package cli

import (
	"strings"
	"testing"

	"parley/internal/cli/exit"
)

// TestLabel: a table of labels reaches the report, and what export writes of them can be read again.
func TestLabel(t *testing.T) {
	t.Parallel()
	file := conversation(t)
	first := write(t, "mine.csv", "episode,verdict,tag,by\n0,pass,,ann\n2,fail,rude,ann\n")
	if got, want := parley(t, State{}, "score", file, "--labels", first).want(t, exit.OK).stdout, file+": 2 labels added\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := parley(t, State{}, "report", file).want(t, exit.OK).stdout; !strings.Contains(got, "label/rude") || !strings.Contains(got, "label/verdict") {
		t.Error(got)
	}
	for _, format := range []string{"csv", "jsonl"} {
		again := write(t, "again."+format, parley(t, State{}, "export", file, "--table", "labels", "--format", format).want(t, exit.OK).stdout)
		if got, want := parley(t, State{}, "score", file, "--labels", again).want(t, exit.OK).stdout, file+": 0 labels added, 2 were there already\n"; got != want {
			t.Errorf("%s: %q, want %q", format, got, want)
		}
	}
	wrong := write(t, "wrong.csv", "episode,verdict\n0,fail\n3,pass\n")
	parley(t, State{}, "score", file, "--labels", wrong).want(t, exit.Misuse).wantErr(t, "wrong.csv:3: there is no episode 3")
	if n := strings.Count(read(t, file+"-labels"), "\n"); n != 2 {
		t.Errorf("%d lines", n)
	}
}
