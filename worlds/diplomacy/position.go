// Part saved reads and writes files of other programs: the saved games of the Python package
// diplomacy, and the lmvsgame.json of the LLM harness built on it.
//
// The same record makes the same bytes. Fields that a record does not have, such as times of day
// and the hashes of the Python engine, are made up in a way that readers accept; see
// docs/diplomacy.md. The package opens no file.

package diplomacy

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"parley/worlds/diplomacy/rules"
)

// SavedPosition reads the position to start from: a state, or a phase of a saved
// game, its last one where none is named. A phase COMPLETED is passed over.
func SavedPosition(data []byte, phase string) (rules.State, error) {
	var file struct {
		rules.State
		Phases []struct {
			Name  string
			State rules.State
		}
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return rules.State{}, fmt.Errorf("not the JSON of a state or of a saved game: %w", err)
	}
	if len(file.Phases) == 0 {
		switch {
		case file.Units == nil:
			return rules.State{}, errors.New("neither a state (name, units, centers) nor a saved game (phases)")
		case phase != "" && phase != file.Name:
			return rules.State{}, fmt.Errorf("is one state, %s: there is no phase %s to start from", file.Name, phase)
		}
		return file.State, nil
	}
	var names []string
	for _, p := range slices.Backward(file.Phases) {
		if _, err := rules.ParsePhase(p.State.Name); err != nil {
			continue
		}
		if phase == "" || p.State.Name == phase {
			return p.State, nil
		}
		names = append(names, p.State.Name)
	}
	if len(names) == 0 {
		return rules.State{}, errors.New("has no phase that could be played")
	}
	return rules.State{}, fmt.Errorf("has no phase %s; it has %s to %s: %s", phase, names[len(names)-1], names[0], strings.Join(names, " "))
}
