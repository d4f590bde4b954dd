package config

import (
	"encoding/json"
	"errors"
	"fmt"

	"parley/internal/store/sqlite"
	"parley/worlds/rollout/experience"
)

// Lessons reads what a run file of rollouts teaches. Like Rows it is beyond what world.Files
// promises.
func (f files) Lessons(name string) (rows []json.RawMessage, err error) {
	path, err := f.may(name)
	if err != nil {
		return nil, err
	}
	store, err := sqlite.OpenRead(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	all, err := experience.Of(f.ctx, store)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	for _, l := range all {
		row, err := json.Marshal(l)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		rows = append(rows, row)
	}
	return rows, nil
}
