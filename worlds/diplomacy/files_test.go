package diplomacy

import (
	"encoding/json"
	"strings"
	"testing"

	"parley/world"
)

// TestFiles checks that every phase has a picture, that saved games are JSON, and that a game without
// notes has no files.
func TestFiles(t *testing.T) {
	t.Parallel()
	d := newDefinition()
	if got := d.Files(world.Played{}, nil); got != nil {
		t.Errorf("a game without notes has the files %v", got)
	}
	notes := playDiplomacy(t, 1, all("greedy"), nil, func(p *Params) { p.Rounds, p.MaxYear = 0, 1901 }).notes
	files := d.Files(world.Played{Episode: 3, Spec: world.Spec{Lineup: map[string]string{"FRANCE": "hero"}}}, notes)
	boards := 0
	for name, text := range files {
		switch {
		case strings.HasSuffix(name, ".json"):
			if !json.Valid([]byte(text)) {
				t.Errorf("%s is not JSON", name)
			}
		case strings.HasSuffix(name, ".svg"):
			boards++
			if err := wellFormed(text); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		default:
			t.Errorf("unexpected file %s", name)
		}
	}
	if boards < 2 || files["game.json"] == "" || !strings.Contains(files["lmvsgame.json"], "hero") {
		t.Errorf("%d boards, %d files", boards, len(files))
	}
}
