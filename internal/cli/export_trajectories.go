package cli

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"parley/internal/export"
	"parley/internal/store/sqlite"
	"parley/worlds/rollout/trajectory"
)

// tableTrajectories is the training data of a run of rollouts.
const tableTrajectories = "trajectories"

// trajectoryFlags say which training data is wanted. The trainer's queries have the same
// names.
type trajectoryFlags struct {
	Status        []string `group:"trajectories" placeholder:"STATUS" help:"Only episodes that ended so: completed, truncated, failed. Default: all."`
	Trainable     bool     `group:"trajectories" help:"Only rows that may be trained on."`
	Whole         bool     `group:"trajectories" help:"Only groups none of whose episodes is left out."`
	Unequal       bool     `group:"trajectories" help:"Only groups whose episodes were not all paid the same."`
	WeightVersion int      `group:"trajectories" placeholder:"N" help:"The version of the weights now: only groups that were answered by it, or by one at most --max-lag older."`
	MaxLag        int      `group:"trajectories" placeholder:"N" help:"See --weight-version. Default: 0."`
}

// filter is what the flags say.
func (f *trajectoryFlags) filter() (trajectory.Filter, error) {
	out := trajectory.Filter{Trainable: f.Trainable, Whole: f.Whole, Unequal: f.Unequal, Version: f.WeightVersion, Lag: f.MaxLag}
	for _, name := range f.Status {
		s, err := trajectory.ParseStatus(name)
		if err != nil {
			return out, usage("--status: %w", err)
		}
		out.Statuses = append(out.Statuses, s)
	}
	switch {
	case f.WeightVersion < 0 || f.MaxLag < 0:
		return out, usage("--weight-version and --max-lag must not be negative")
	case f.MaxLag > 0 && f.WeightVersion == 0:
		return out, usage("--max-lag counts back from --weight-version: say that too")
	}
	return out, nil
}

// given says whether any of them is.
func (f *trajectoryFlags) given() bool {
	return len(f.Status) > 0 || f.Trainable || f.Whole || f.Unequal || f.WeightVersion != 0 || f.MaxLag != 0
}

// checkTrajectories looks at what can be wrong before the run is opened.
func (c *exportCmd) checkTrajectories(format export.Format) error {
	switch {
	case c.Table != tableTrajectories && c.given():
		return usage("--status, --trainable, --whole, --unequal, --weight-version and --max-lag are for --table trajectories")
	case c.Table == tableTrajectories && format == export.CSV:
		return usage("--table trajectories has lists in its rows, and csv has none: use jsonl or parquet")
	}
	_, err := c.filter()
	return err
}

// fits says whether a run of this kind has the table.
func (c *exportCmd) fits(kind string) error {
	if c.Table == tableTrajectories && kind != "rollout" {
		return usage("--table trajectories: %s is a run of %s, and only rollouts have trajectories: export calls, or see docs/rollout.md", c.File, kind)
	}
	return nil
}

// trajectories writes the training data that is wanted, and says what was left out.
func (c *exportCmd) trajectories(ctx context.Context, w io.Writer, store *sqlite.Store, format export.Format) (rows int, note string, err error) {
	filter, err := c.filter()
	if err != nil {
		return 0, "", err
	}
	account, err := trajectory.Write(ctx, w, &export.Rollouts{Store: store}, filter, trajectory.Format(format))
	return account.Rows, accountOf(account), err
}

// accountOf says what was left out of the groups of a run.
func accountOf(a trajectory.Account) string {
	var left []string
	for _, why := range slices.Sorted(maps.Keys(a.Left)) {
		left = append(left, number(a.Left[why])+" "+why)
	}
	if len(left) == 0 {
		return ""
	}
	return fmt.Sprintf("%s of %s groups, left out: %s", number(a.Kept), number(a.Groups), strings.Join(left, ", "))
}
