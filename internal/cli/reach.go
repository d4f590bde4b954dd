package cli

import (
	"path/filepath"
	"slices"
	"strings"

	"parley/internal/cli/exit"
	"parley/internal/run/planfile"
	"parley/world/program"
)

// reachFlags allow a plan to name files outside its folder.
type reachFlags struct{ program.ReachFlags }

func (f *reachFlags) reach() planfile.Reach { return planfile.Reach{Folders: f.AllowFiles} }

// recorded is the reach of a plan that a run file recorded. Its paths are relative to the current folder, so
// that folder is within reach too.
func (f *reachFlags) recorded(more ...string) *planfile.Reach {
	return &planfile.Reach{Folders: slices.Concat(f.AllowFiles, []string{"."}, more)}
}

// runFile returns the run file of a plan: the one that the user named, or the plan, or a file beside the plan.
// The last must not be a link to somewhere else.
func (f *reachFlags) runFile(plan *planfile.Plan, planFile, out string) (string, error) {
	switch {
	case out != "":
		return out, nil
	case plan.Out != "":
		return plan.Out, nil
	}
	file := strings.TrimSuffix(planFile, filepath.Ext(planFile)) + ".parley"
	if err := f.reach().Check(planFile, file); err != nil {
		return "", exit.Usagef("%w", err)
	}
	return file, nil
}
