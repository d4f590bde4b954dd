// Package score reads the scores that were added to a run after it was played: those of the runs of scorers, which are in a
// folder beside the run file. It also writes episodes as scorers get them.
//
// The run of a scorer is an ordinary run file, with an episode for each episode that is scored. Read is the one place
// where its scores become scores of the run that it scored.
package score

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"parley/internal/run/results"
	"parley/internal/run/runfile"
	"parley/journal"
	"parley/world"
)

// ext is the ending of run files.
const ext = ".parley"

// Folder returns the folder with the runs that score a run.
func Folder(run string) string { return strings.TrimSuffix(run, ext) + ".scores" }

// File returns the run file of a scorer.
func File(run, scorer string) string { return filepath.Join(Folder(run), scorer+ext) }

// Origin returns the run file whose scores are in the run file of a scorer.
func Origin(file string) string { return strings.TrimSuffix(filepath.Dir(file), ".scores") + ext }

// Set is the scores that were added to a run.
type Set struct {
	// By maps episodes to their scores. The names are those of the scorer and the measure: Politeness.polite.
	By map[int][]world.Score
	// Bounds are the possible values, by name.
	Bounds map[string]world.Bounds
}

// Of returns the scores of an episode: those of its outcome, and those that were added.
func (s *Set) Of(episode int, o world.Outcome) []world.Score {
	return append(slices.Clip(o.Scores), s.By[episode]...)
}

// Read reads the scores that were added to the run in a file. id is the id of the run: scores of another run are left out.
// Episodes that the scorer failed to score have none.
func Read(ctx context.Context, file, id string) (*Set, error) {
	set := &Set{By: map[int][]world.Score{}, Bounds: map[string]world.Bounds{}}
	err := each(file, func(of, scorer string) error { return set.add(ctx, of, scorer, id) })
	if err != nil {
		return nil, err
	}
	return set, nil
}

// each calls f with the run file and the name of each scorer of the run in a file.
func each(file string, f func(of, scorer string) error) error {
	all, err := os.ReadDir(Folder(file))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("score: %w", err)
	}
	for _, one := range all {
		scorer, ok := strings.CutSuffix(one.Name(), ext)
		if !ok || !one.Type().IsRegular() {
			continue
		}
		if err := f(File(file, scorer), scorer); err != nil {
			return fmt.Errorf("score: %s: %w", one.Name(), err)
		}
	}
	return nil
}

// add adds the scores of one file.
func (s *Set) add(ctx context.Context, file, name, id string) (err error) {
	store, err := runfile.OpenRead(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	head, err := store.Head(ctx)
	if err != nil || head.Begun == nil {
		return err
	}
	what, err := Of(head.Begun)
	if err != nil || what.Run != id {
		return err
	}
	for measure, bounds := range what.Bounds() {
		s.Bounds[name+"."+measure] = bounds
	}
	for spec, ended := range head.Played() {
		of, err := scoredOf(spec.Params)
		if err != nil {
			return err
		}
		if len(of.Measures) != len(what.Measures) { // some were found while scoring
			for measure, bounds := range of.Bounds() {
				s.Bounds[name+"."+measure] = bounds
			}
		}
		for _, one := range ended.Outcome.Scores {
			one.Name = name + "." + one.Name
			s.By[of.Episode] = append(s.By[of.Episode], one)
		}
	}
	return nil
}

// Of returns what the run of a scorer scores. It is empty for any other run.
func Of(b *journal.Begun) (results.Scored, error) {
	var plan struct {
		Params json.RawMessage `json:"params"`
	}
	if err := json.Unmarshal(b.Plan, &plan); err != nil {
		return results.Scored{}, err
	}
	return scoredOf(plan.Params)
}

func scoredOf(params json.RawMessage) (results.Scored, error) {
	var p struct {
		Scored results.Scored `json:"scored"`
	}
	err := json.Unmarshal(params, &p)
	return p.Scored, err
}

// Merge adds the scores that are attached to a run, with other numbers of episodes. ok is false for an episode to leave out.
func (s *Set) Merge(r *results.Run, number func(episode int) (n int, ok bool)) {
	for episode, all := range r.Added {
		if n, ok := number(episode); ok {
			s.By[n] = all
		}
		for _, one := range all {
			s.Bounds[one.Name] = r.Bounds[one.Name]
		}
	}
}

// Attach adds scores to a run. Call it after Know.
func (s *Set) Attach(r *results.Run) {
	r.Added = s.By
	maps.Copy(r.Bounds, s.Bounds)
}
