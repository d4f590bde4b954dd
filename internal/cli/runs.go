package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"parley/internal/cli/exit"
	"parley/internal/cli/terminal"
	"parley/internal/kit/text"
	"parley/internal/read/report"
	"parley/internal/read/score"
	"parley/internal/run/label"
	"parley/internal/run/merge"
	"parley/internal/run/results"
	"parley/internal/run/runfile"
	"parley/internal/serve/gateway"
	"parley/journal"
	"parley/world"
)

// openRun opens a file that holds a run for reading.
func openRun(ctx context.Context, file string) (*runfile.Store, runfile.Outline, error) {
	store, err := runfile.OpenRead(file)
	if err != nil {
		return nil, runfile.Outline{}, exit.AsUsage(playError(file, err))
	}
	about, err := store.Outline(ctx)
	if errors.Is(err, runfile.ErrDamaged) {
		if err = store.Salvage(ctx); err == nil {
			about, err = store.Outline(ctx)
		}
	}
	switch {
	case err != nil:
		err = playError(file, err)
	case about.Begun == nil:
		err = exit.Usagef("%s holds no run yet", file)
	default:
		return store, about, nil
	}
	return nil, about, errors.Join(err, store.Close())
}

// outlineOf returns the outline of a run file, and the zero Outline if the file does not exist.
func outlineOf(ctx context.Context, file string) (about runfile.Outline, err error) {
	store, err := runfile.OpenRead(file)
	if errors.Is(err, fs.ErrNotExist) {
		return about, nil
	}
	if err != nil {
		return about, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	return store.Outline(ctx)
}

// runFiles are open run files.
type runFiles []*runfile.Store

func (f runFiles) close() error {
	var errs []error
	for _, s := range f {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}

// readRuns opens run files, folds them, and passes them to do. If a file is damaged, it is read again without
// the damaged episodes: see reportLosses.
func readRuns(ctx context.Context, s *State, files []string, do func([]report.Source) error) (open runFiles, err error) {
	defer func() {
		if err != nil {
			open, err = nil, errors.Join(err, open.close())
		}
	}()
	for _, file := range files {
		store, err := runfile.OpenRead(file)
		if err != nil {
			return open, exit.AsUsage(playError(file, err))
		}
		open = append(open, store)
	}
	err = open.read(ctx, s, files, do)
	if !errors.Is(err, runfile.ErrDamaged) {
		return open, err
	}
	for _, store := range open {
		if err := store.Salvage(ctx); err != nil {
			return open, playError(store.Path(), err)
		}
	}
	return open, open.read(ctx, s, files, do)
}

func (f runFiles) read(ctx context.Context, s *State, files []string, do func([]report.Source) error) error {
	var runs []report.Source
	for i, store := range f {
		run, err := results.Fold(ctx, store, files[i])
		if errors.Is(err, results.ErrEmpty) {
			return exit.AsUsage(err)
		}
		if err != nil {
			return playError(files[i], err)
		}
		kind := s.kindOf(run.Head.Begun)
		run.Know(kind)
		labels, err := label.Read(ctx, store.Path(), run.Head.Begun.Run)
		if err != nil {
			s.tell("the labels are left out: " + err.Error())
			labels = &label.Set{}
		}
		report.AttachLabels(run, labels)
		added := s.addedScores(ctx, store.Path(), run.Head.Begun.Run)
		added.Attach(run)
		judged, err := score.Judges(ctx, store.Path(), run.Head.Begun.Run, slices.Sorted(maps.Keys(run.Labels)))
		if err != nil {
			s.tell("scores by single judges are left out: " + err.Error())
		}
		runs = append(runs, report.Source{Run: run, Journal: store, Kind: kind, Labels: labels, Judged: judged})
	}
	return do(runs)
}

// addedScores reads the scores that scorers gave to a run.
func (s *State) addedScores(ctx context.Context, file, run string) *score.Set {
	set, err := score.Read(ctx, file, run)
	if err != nil {
		s.tell("added scores are left out: " + err.Error())
		set = &score.Set{}
	}
	return set
}

// oneRun reads runs as one. If they are not parts of one experiment, the error is a *merge.ConflictError.
func oneRun(ctx context.Context, runs []report.Source) (report.Source, error) {
	out := report.Source{Kind: runs[0].Kind, Judged: score.Judged{}}
	sources := mergeable(runs)
	merged, err := merge.New(ctx, sources)
	if err != nil {
		return out, err
	}
	for i, s := range sources {
		out.Parts = append(out.Parts, report.Part{Name: s.Name, Run: runs[i].Run, Episodes: merged.Episodes(i)})
	}
	for _, shared := range merged.Shared {
		out.Notes = append(out.Notes, shared.String())
	}
	if out.Run, err = results.Fold(ctx, merged, runs[0].Run.File); err != nil {
		return out, err
	}
	out.Run.Know(out.Kind)
	labels := &label.Set{}
	for i, r := range runs {
		for _, l := range r.Labels.All {
			if n, ok := merged.Number(i, l.Episode); ok {
				l.Episode = n
				labels.Add(l)
			}
		}
	}
	report.AttachLabels(out.Run, labels)
	added := &score.Set{By: map[int][]world.Score{}, Bounds: map[string]world.Bounds{}}
	for i, r := range runs {
		added.Merge(r.Run, func(episode int) (int, bool) { return merged.Number(i, episode) })
		for episode, all := range r.Judged {
			if n, ok := merged.Number(i, episode); ok {
				out.Judged[n] = all
			}
		}
	}
	added.Attach(out.Run)
	for _, r := range runs {
		out.Run.Plans = append(out.Run.Plans, r.Run.Head.Begun.Plan)
	}
	out.Journal = merged
	return out, nil
}

// mergeable converts runs for package merge.
func mergeable(runs []report.Source) []merge.Source {
	out := make([]merge.Source, len(runs))
	for i, name := range report.Names(runs) {
		out[i] = merge.Source{Name: name, Journal: runs[i].Journal, Kind: runs[i].Kind}
	}
	return out
}

// readUndamaged calls do, which reads a run. If the file is damaged, it calls do again on a store that leaves out the damaged
// episodes, and names these on standard error: left is then silent and only carries the exit code. do must print nothing before it has
// read everything.
func readUndamaged(ctx context.Context, s *State, store *runfile.Store, do func() error) (left, err error) {
	err = do()
	if errors.Is(err, runfile.ErrDamaged) && store.Lost() == nil {
		if err = store.Salvage(ctx); err == nil {
			err = do()
		}
	}
	if err != nil {
		return nil, err
	}
	return reportLosses(s, store), nil
}

// reportLosses names the episodes that stores left out.
func reportLosses(s *State, stores ...*runfile.Store) (err error) {
	for _, store := range stores {
		lost := store.Lost()
		if lost == nil {
			continue
		}
		what := "some entries that are of no episode"
		switch len(lost.Damaged) {
		case 0:
		case 1:
			what = "episode " + text.Ranges(lost.Damaged, 0)
		default:
			what = "episodes " + text.Ranges(lost.Damaged, 0)
		}
		fmt.Fprintf(s.Stderr, "parley: %s is damaged and was read without %s; parley check %s shows the damage\n", terminal.Safe(store.Path()), what, terminal.Safe(terminal.ShellWord(store.Path())))
		err = exit.Silent(exit.Failed)
	}
	return err
}

// kindOf returns the kind of a run if this program has that version of it, or the kind of a gateway's record.
func (s *State) kindOf(b *journal.Begun) world.Kind {
	return b.KindAmong(slices.Concat(s.Kinds, []world.Kind{gateway.Kind(), score.RubricKind(nil, nil)}))
}
