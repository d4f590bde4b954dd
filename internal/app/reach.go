package app

import (
	"encoding/json"
	"fmt"

	"parley/internal/config"
)

// reachable is an error unless the files that a recorded plan names, and is still to be played with,
// lie in the folder of its run file or within reach: a run file may be a stranger's.
func reachable(file string, reach *config.Reach, recorded json.RawMessage, plan *config.Plan) error {
	if reach == nil {
		return nil
	}
	var was struct{ Prices, Cache string }
	if err := json.Unmarshal(recorded, &was); err != nil {
		return fmt.Errorf("app: %s: the recorded plan: %w", file, err)
	}
	for _, one := range []struct{ key, was, is string }{{"prices", was.Prices, plan.Prices}, {"cache", was.Cache, plan.Cache}} {
		if one.is == "" || one.is != one.was {
			continue // the user named another
		}
		if err := reach.Check(file, one.is); err != nil {
			return usageError{fmt.Errorf("%s: recorded plan: %s: %w", file, one.key, err)}
		}
	}
	return nil
}
