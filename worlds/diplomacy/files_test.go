package diplomacy

import (
	"encoding/json"
	"encoding/xml"
	"io"
	"strings"
	"testing"

	"parley/world"
)

// TestFiles: every phase has its picture, the saved games are JSON, and notes that are
// nobody's game make no files.
func TestFiles(t *testing.T) {
	t.Parallel()
	d := newDefinition()
	if got := d.Files(world.Played{}, nil); got != nil {
		t.Errorf("files of nothing: %v", got)
	}
	notes := play(t, 1, all("greedy"), nil, func(p *Params) { p.Rounds, p.MaxYear = 0, 1901 }).notes
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
			d := xml.NewDecoder(strings.NewReader(text))
			for {
				if _, err := d.Token(); err == io.EOF {
					break
				} else if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
			}
		default:
			t.Errorf("what is %s?", name)
		}
	}
	if boards < 2 || files["game.json"] == "" || !strings.Contains(files["lmvsgame.json"], "hero") {
		t.Errorf("%d boards, %d files", boards, len(files))
	}
}
