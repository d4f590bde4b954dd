package diplomacy

import (
	"fmt"
	"strings"

	"parley/world"
	"parley/worlds/diplomacy/drawing"
)

// Files returns the files of a game: saved games for the Python package diplomacy and for
// lmvsgame, and a picture of every phase.
func (d *definition) Files(p world.Played, notes []world.Note) map[string]string {
	g := Read(notes)
	if len(g.Phases) == 0 {
		return nil
	}
	info := Info{ID: fmt.Sprintf("episode-%d", p.Episode), Models: p.Spec.Lineup}
	out := map[string]string{}
	if b, err := SavedGame(g, info); err == nil {
		out["game.json"] = string(b)
	}
	if b, err := LMvsGame(g, info); err == nil {
		out["lmvsgame.json"] = string(b)
	}
	drawer := drawing.New(d.rules.Board)
	for i := range g.Phases {
		var b strings.Builder
		scene, err := showScene(d.rules.Board, &g.Phases[i])
		if err == nil && drawer.Draw(&b, scene) == nil {
			out[fmt.Sprintf("board-%03d-%s.svg", i+1, safeName(g.Phases[i].State.Name))] = b.String()
		}
	}
	return out
}

// safeName keeps the letters and digits of a phase's name: notes are not trusted.
func safeName(text string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' {
			return r
		}
		return -1
	}, text)
}
