package app

import (
	"fmt"

	"parley/internal/run/planfile"
)

// reachable checks that the files of a plan that it has from the recorded one are in the folder of the run file or within
// reach. A run file may come from a stranger.
func reachable(file string, reach *planfile.Reach, recorded, plan *planfile.Plan) error {
	if reach == nil {
		return nil
	}
	for _, one := range []struct{ key, old, now string }{{"prices", recorded.Prices, plan.Prices}, {"cache", recorded.Cache, plan.Cache}} {
		if one.now == "" || one.now != one.old {
			continue // the user named another
		}
		if err := reach.Check(file, one.now); err != nil {
			return usageError{fmt.Errorf("%s: recorded plan: %s: %w", file, one.key, err)}
		}
	}
	return nil
}
