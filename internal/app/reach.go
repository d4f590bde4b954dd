package app

import (
	"encoding/json"
	"fmt"

	"parley/internal/config"
)

// reachable checks that the files of a recorded plan, except those that plan replaces, are in the folder
// of its run file or within reach. A run file may come from a stranger.
func reachable(file string, reach *config.Reach, recorded json.RawMessage, plan *config.Plan) error {
	if reach == nil {
		return nil
	}
	var old struct{ Prices, Cache string }
	if err := json.Unmarshal(recorded, &old); err != nil {
		return fmt.Errorf("app: %s: the recorded plan: %w", file, err)
	}
	for _, one := range []struct{ key, old, now string }{{"prices", old.Prices, plan.Prices}, {"cache", old.Cache, plan.Cache}} {
		if one.now == "" || one.now != one.old {
			continue // the user named another
		}
		if err := reach.Check(file, one.now); err != nil {
			return usageError{fmt.Errorf("%s: recorded plan: %s: %w", file, one.key, err)}
		}
	}
	return nil
}
