package app

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"parley/internal/kit/files"
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
		return &growth.Choice{Plan: forFolder(p.Plan, runFolder(p.File)), Stages: stages}, err
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
		plan.Budget = recorded.Budget // a plan without a budget keeps the recorded one
	}
	c, err := growth.Continue(recorded, plan, head, p.Failed)
	if changed, ok := errors.AsType[*growth.ChangedError](err); ok {
		changed.File, changed.Todo = p.File, "use --out for another run file, resume the recorded plan with parley run, or change one episode with parley fork"
		if _, other := growth.Continue(recorded, plan, head, true); !p.Failed && other == nil { // only programs differ that have not played an episode to its end
			changed.Todo = "add --failed to go on with the corrected program, or " + changed.Todo
			return nil, usageError{changed}
		}
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
	if err != nil || complete(head) && c.Grown == nil && (!p.Failed || head.Ended.Failed() == 0) {
		return c, err // a complete run is only read
	}
	if changes, played := growth.CodeChanges(head.Begun.Code, p.Code), head.Ended.Len()+len(head.Playing); len(changes) > 0 && played > 0 && !p.ChangedCode && !p.Failed {
		return nil, usageError{fmt.Errorf("%s: %s since the run was played: episodes of two versions of the code would be in one file. Restore the code, or begin a new run file; "+
			"--changed-code continues this one with the code as it is now", p.File, strings.Join(changes, ", "))}
	}
	c.Use(p.Code, head)
	if p.Failed && p.Remote != nil {
		return nil, usageError{errors.New("--failed: workers do not play episodes again: leave out --cluster and --workers")}
	}
	if p.Failed {
		if err := c.PlayAgain(head); err != nil {
			return nil, usageError{fmt.Errorf("%s: %w", p.File, err)}
		}
	}
	return c, nil
}

// plans returns the recorded plan, and the one to play: the given one, or else the recorded one with the overrides.
func (p Play) plans(begun json.RawMessage) (recorded, plan *planfile.Plan, err error) {
	if recorded, err = planfile.FromJSON(begun, p.kinds(), nil); err != nil {
		return nil, nil, err
	}
	recorded = fromFolder(recorded, runFolder(p.File))
	if p.Plan != nil {
		return recorded, forFolder(p.Plan, runFolder(p.File)), nil
	}
	if plan, err = planfile.FromJSON(begun, p.kinds(), p.Sets); err != nil {
		return nil, nil, err
	}
	plan = fromFolder(plan, runFolder(p.File))
	return recorded, plan, reachable(p.File, p.Reach, recorded, plan)
}

// A recorded plan names its files relative to the folder of its run file, so that they are found from any current
// folder, and when the folder is moved with everything in it.

// forFolder returns plan for a run file in folder, with settings of its own.
func forFolder(plan *planfile.Plan, folder string) *planfile.Plan {
	same := *plan
	same.Folder, same.Settings = folder, new(*plan.Settings)
	return &same
}

// fromFolder returns a plan that a run file in folder recorded, with paths that can be opened.
func fromFolder(plan *planfile.Plan, folder string) *planfile.Plan {
	same := forFolder(plan, folder)
	if real, err := filepath.EvalSymlinks(folder); err == nil {
		folder = real // a recorded path may begin with ..
	}
	for _, name := range []*string{&same.Prices, &same.Cache, &same.Out} {
		if *name = filepath.FromSlash(*name); *name != "" && !filepath.IsAbs(*name) {
			*name = filepath.Join(folder, *name)
		}
	}
	return same
}

// runFolder returns the folder of the run file at path, which may be a link to it. That of a journal without a file is the current one.
func runFolder(file string) string {
	if target, err := filepath.EvalSymlinks(file); err == nil && files.Resolve(filepath.Dir(file)) != filepath.Dir(files.Resolve(target)) {
		return filepath.Dir(target)
	}
	return filepath.Dir(file)
}

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

// replayComplete plays a complete run once more from its journal. It asks nothing and writes nothing.
// It returns nil if there is something to play or to write, or if the file cannot be read:
// the next Open reports why.
func (p Play) replayComplete(ctx, drain context.Context) (_ *Summary, err error) {
	store, err := runfile.OpenRead(p.File)
	if err != nil {
		return nil, nil
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	head, err := store.Head(ctx)
	if err != nil || !complete(head) {
		return nil, nil
	}
	c, err := p.choose(head)
	if err != nil || c.Begun != nil || c.Again > 0 {
		return nil, err
	}
	return p.play(ctx, drain, store, head, c, &waves{})
}

// complete reports whether everything that the plan of a run asks for was played.
func complete(head *journal.Head) bool {
	return head.Begun != nil && !head.Cut && head.Last.State == journal.Complete
}

// completeJournal is the journal of a complete run. It does not record that a process opened and
// closed it, and refuses everything else.
type completeJournal struct{ *runfile.Store }

// Append ignores the entries that a process began and ended, and that it collects no log of a hub.
func (c completeJournal) Append(_ context.Context, entries ...journal.Entry) error {
	for _, e := range entries {
		switch e.(type) {
		case *journal.Opened, *journal.Closed, *journal.Collected:
		default:
			return fmt.Errorf("%s is complete, and its plan now asks for more", c.Path())
		}
	}
	return nil
}

// journalOf returns the journal of a run as it is played.
func journalOf(store journal.Journal, choice *growth.Choice, done bool) journal.Journal {
	if file, ok := store.(*runfile.Store); done && ok {
		return completeJournal{file}
	}
	if choice.Recoded != nil {
		return &recodedJournal{Journal: store, begun: choice.Recoded}
	}
	return store
}

// recodedJournal is the journal of a run that is continued with other code. It records the new code together with the first entry that
// was played with it. If nothing can be played, because the new code asks something else, the old code continues the run.
type recodedJournal struct {
	journal.Journal

	mu    sync.Mutex
	begun *journal.Begun // how the run is played now
	known bool           // it is recorded
}

// Head returns the head of the run as it is played now.
func (r *recodedJournal) Head(ctx context.Context) (*journal.Head, error) {
	head, err := r.Journal.Head(ctx)
	if err == nil {
		head.Begun = r.begun
	}
	return head, err
}

// Append records entries, and the new code before the first that was played.
func (r *recodedJournal) Append(ctx context.Context, entries ...journal.Entry) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known || !slices.ContainsFunc(entries, isPlayed) {
		return r.Journal.Append(ctx, entries...)
	}
	err := r.Journal.Append(ctx, slices.Insert(slices.Clone(entries), 0, journal.Entry(r.begun))...)
	r.known = err == nil
	return err
}

// isPlayed reports whether an entry depends on the code of a run.
func isPlayed(e journal.Entry) bool {
	switch e.(type) {
	case *journal.Opened, *journal.Closed, *journal.Collected, *journal.Steered, *journal.Exposed:
		return false
	}
	return true
}
