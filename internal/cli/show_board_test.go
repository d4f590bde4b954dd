package cli

import (
	"encoding/xml"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"parley/internal/cli/exit"
)

// TestShowBoard checks that the picture of a phase is a complete SVG, and that a missing phase is an error.
func TestShowBoard(t *testing.T) {
	t.Parallel()
	sequential(t)
	file := filepath.Join(t.TempDir(), "game.parley")
	parley(t, State{}, "run", "../../examples/diplomacy-baseline.yaml", "--set", "params.max_year=1901", "--out", file, "--quiet").want(t, exit.OK)
	for _, phase := range []string{"S1901M", "last"} {
		got := parley(t, State{}, "show", file, "--episode", "0", "--board", phase).want(t, exit.OK)
		d := xml.NewDecoder(strings.NewReader(got.stdout))
		elements := 0
		for {
			token, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", phase, err)
			}
			if _, ok := token.(xml.StartElement); ok {
				elements++
			}
		}
		if elements < 100 || !strings.HasPrefix(strings.TrimSpace(got.stdout), "<svg") {
			t.Errorf("%s is not a board: %.80q", phase, got.stdout)
		}
	}
	parley(t, State{}, "show", file, "--episode", "0", "--board", "F1999M").want(t, exit.Misuse).wantErr(t, "no such phase", "S1901M")
	parley(t, State{}, "show", file, "--board", "last").want(t, exit.Misuse).wantErr(t, "--episode")
}
