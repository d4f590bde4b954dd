package cli

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"parley/internal/cli/exit"
	"parley/internal/cli/terminal"
	"parley/internal/config"
	"parley/internal/config/peek"
	"parley/internal/files"
	"parley/internal/score/rubric"
	"parley/internal/score/scored"
	"parley/journal"
)

// maxRubric limits the size of a plan file.
const maxRubric = 64 << 20

// openRubric makes the kind of rubrics known, with the run whose episodes are scored.
func (s *State) openRubric(ctx context.Context, run string) (*scorer, error) {
	from, err := s.openScored(ctx, run)
	if err != nil {
		return nil, err
	}
	kind := rubric.Open(from.played)
	s.Kinds = append(slices.Clip(s.Kinds), kind)
	return &scorer{kind: kind, head: from.head}, nil
}

// rubricPlan returns the plan of a plan file of the kind rubric. It says in a param what is scored.
func (c *scoreCmd) rubricPlan(ctx context.Context, s *State) (*config.Plan, error) {
	of, err := s.openRubric(ctx, c.File)
	if err != nil {
		return nil, err
	}
	text, err := files.Read(ctx, c.With, maxRubric)
	if err != nil {
		return nil, exit.Usagef("--with: %w; want a plan file of the kind rubric, or a class in Python such as polite.py:Politeness", err)
	}
	if kind := peek.File(ctx, c.With).Kind; kind != rubric.Name {
		return nil, exit.Usagef("%s: kind %q: want a plan file with kind: rubric", c.With, terminal.Safe(kind))
	}
	digest := fmt.Sprintf("%x", sha256.Sum256(text))
	of.same = func(b *journal.Begun) bool { return rubric.Source(b.Plan) == digest }
	sets := append(c.sets(), "episodes=1", "params.source="+digest)
	for _, seat := range slices.Sorted(maps.Keys(c.Judge)) {
		sets = append(sets, fmt.Sprintf("agents.%s.model=%s", seat, c.Judge[seat]), fmt.Sprintf("lineup.%s=%s", seat, seat))
	}
	plan, err := config.Load(ctx, c.With, s.Kinds, sets, c.reach())
	if err != nil {
		return nil, exit.AsUsage(err)
	}
	for _, st := range of.head.Stages {
		for i, judge := range plan.Seats {
			if _, taken := st.Specs.At(0).Lineup[judge]; taken {
				return nil, exit.Usagef("%s: params.judges[%d]: %s is a seat of %s: rename the judge", c.With, i, judge, c.File)
			}
		}
	}
	what, err := c.what(ctx, s, of, plan.Kind.Measures(plan.Params))
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(what)
	if err != nil {
		return nil, err
	}
	plan, err = config.Load(ctx, c.With, s.Kinds, append(sets, "params."+scored.Param+"="+string(raw)), c.reach())
	return plan, exit.AsUsage(err)
}

// resumeRubric makes a run of a rubric ready to be resumed. Its plan is recorded, so the plan file does not matter.
func (s *State) resumeRubric(ctx context.Context, run string, what scored.Scored, of source) error {
	opened, err := s.openRubric(ctx, run)
	if err == nil && opened.head.Begun.Run != what.Run {
		err = exit.Usagef("%s scores another run than %s", of.file, run)
	}
	return err
}
