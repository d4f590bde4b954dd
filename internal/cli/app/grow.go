package app

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"parley/internal/run/engine"
	"parley/internal/run/growth"
	"parley/internal/run/planfile"
	"parley/internal/run/runfile"
	"parley/journal"
)

// Growth says how many episodes the plan adds to its run file. It writes nothing. Nil: it adds none, or
// there is no run file.
func (p Play) Growth(ctx context.Context) (_ *growth.Growth, err error) {
	store, err := runfile.OpenRead(p.File)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	head, err := store.Head(ctx)
	if err != nil {
		return nil, err
	}
	c, err := p.choose(head)
	if err != nil {
		return nil, err
	}
	return c.Grown, nil
}

// nothingPlayed reports whether a run began and has nothing to lose: no reply and no outcome is recorded, no batch is open, and no call can
// have cost anything.
func nothingPlayed(head *journal.Head) bool {
	return head.Calls == 0 && head.Ended.Len() == 0 && len(head.Batches) == 0 && head.Spent == 0 && head.Risked == 0 && head.Owed == 0
}

// choose returns what to play: the given plan if there is one, otherwise the recorded one. It refuses a plan
// that would change what was played.
func (p Play) choose(head *journal.Head) (*growth.Choice, error) {
	if head.Begun == nil {
		if p.Plan == nil {
			return nil, usageError{fmt.Errorf("%s holds no run yet: play a plan into it first", cmp.Or(p.File, "the journal"))}
		}
		stages, err := p.Plan.World()
		return &growth.Choice{Plan: forFolder(p.Plan, p.folder()), Stages: stages}, err
	}
	for _, k := range p.kinds() {
		if k.Name != head.Begun.Kind {
			continue
		}
		if err := engine.SameKind(head.Begun, k); err != nil {
			return nil, usageError{fmt.Errorf("%s: %w", p.File, err)}
		}
	}
	recorded, plan, err := p.plans(head.Begun.Plan)
	if err != nil {
		return nil, err
	}
	if plan.Budget == 0 && recorded.Budget > 0 && p.Plan != nil {
		same := *plan
		same.Budget = recorded.Budget // a plan without a budget keeps the recorded one
		plan = &same
	}
	c, err := growth.Continue(recorded, plan, head)
	if changed, ok := errors.AsType[*growth.ChangedError](err); ok {
		changed.File, changed.Todo = p.File, "use --out for another run file, resume the recorded plan with parley resume, or change one episode with parley fork"
		changed.Empty = nothingPlayed(head)
		switch {
		case changed.Empty && p.Plan != nil:
			changed.Todo = "name another file with --out"
		case changed.Empty:
			changed.Todo = "play the plan into another file"
		case p.Plan == nil:
			changed.Todo = "change one episode with parley fork, or begin a new run"
		}
		return nil, usageError{changed}
	}
	if err != nil || complete(head) && c.Grown == nil {
		return c, err // a complete run is only read
	}
	if changes, played := growth.CodeChanges(head.Begun.Code, p.Code), head.Ended.Len()+len(head.Playing); len(changes) > 0 && played > 0 && !p.ChangedCode {
		return nil, usageError{fmt.Errorf("%s: %s since the run was played: episodes of two versions of the code would be in one file. Restore the code, or begin a new run file; "+
			"--changed-code continues this one with the code as it is now", p.File, strings.Join(changes, ", "))}
	}
	c.Use(p.Code, head)
	return c, nil
}

// plans returns the recorded plan, and the one to play: the given one, or else the recorded one with the overrides.
func (p Play) plans(begun json.RawMessage) (recorded, plan *planfile.Plan, err error) {
	if recorded, err = planfile.FromJSON(begun, p.kinds(), nil); err != nil {
		return nil, nil, err
	}
	recorded = fromFolder(recorded, p.folder())
	if p.Plan != nil {
		return recorded, forFolder(p.Plan, p.folder()), nil
	}
	if plan, err = planfile.FromJSON(begun, p.kinds(), p.Sets); err != nil {
		return nil, nil, err
	}
	plan = fromFolder(plan, p.folder())
	return recorded, plan, reachable(p.File, p.Reach, recorded, plan)
}
