package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"parley/internal/merge"
	"parley/internal/near"
	"parley/internal/report"
	"parley/internal/report/compare"
	"parley/internal/view"
)

// compareCmd says what differs.
type compareCmd struct {
	Files   []string `arg:"" placeholder:"FILE" help:"Run files to compare with each other; or one, whose agents, models or cells are compared."`
	By      string   `placeholder:"WHAT" help:"What to compare: file, agent, model or cell. Default: file where there are several, else agent."`
	Score   []string `placeholder:"NAME" help:"Only this score. May be given several times."`
	Against string   `placeholder:"NAME" help:"Compare all others with this one. Default: each with each."`
	Correct string   `enum:"holm,bh,none" default:"holm" placeholder:"METHOD" help:"How to correct for the number of comparisons: holm, bh (Benjamini and Hochberg) or none. Default: ${default}."`
	tableFlags
}

// Run compares.
func (c *compareCmd) Run(ctx context.Context, s *State) (err error) {
	ways := []string{compare.ByFile, compare.ByAgent, compare.ByModel, compare.ByCell}
	if c.By != "" && !slices.Contains(ways, c.By) {
		return usage("--by %s: want one of %s%s", c.By, strings.Join(ways, ", "), didYouMean(c.By, ways))
	}
	if err := c.check(c.Files); err != nil {
		return err
	}
	var sources []report.Source
	stores, err := readRuns(ctx, c.Files, func(runs []report.Source) error {
		sources = runs
		return nil
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stores.close()) }()
	if sources, err = c.merged(ctx, s, sources); err != nil {
		return err
	}
	runs := make([]*view.Run, len(sources))
	for i := range sources {
		runs[i] = sources[i].Run
	}
	result, err := compare.Runs(runs, report.Names(sources), compare.Config{By: c.By, Correct: c.Correct, Scores: c.Score, Against: c.Against})
	if err != nil {
		if errors.Is(err, compare.ErrUnknown) {
			return usage("%w", err)
		}
		if errors.Is(err, compare.ErrOne) {
			return usage("%w\nname another file, or compare something else: --by file, agent, model or cell", err)
		}
		return err
	}
	if err := c.show(s, result.Document(version()), c.Files); err != nil {
		return err
	}
	return leftOut(s, stores...)
}

// merged reads runs as one where they are not compared with each other, and says which episodes
// are in several.
func (c *compareCmd) merged(ctx context.Context, s *State, runs []report.Source) ([]report.Source, error) {
	if len(runs) < 2 {
		return runs, nil
	}
	if c.By == "" || c.By == compare.ByFile {
		_, shared, err := merge.Duplicates(ctx, mergeable(runs))
		for _, both := range shared {
			fmt.Fprintf(s.Stderr, "parley: %s in both %s and %s, and counted in both\n", several(both.Episodes, "episode is", "episodes are"), safe(both.First), safe(both.Second))
		}
		return runs, err
	}
	one, err := oneRun(ctx, runs)
	if conflict, ok := errors.AsType[*merge.ConflictError](err); ok {
		fmt.Fprintf(s.Stderr, "parley: the runs are not parts of one experiment, and their episodes are taken together all the same: %s\n", safe(conflict.What))
		return runs, nil
	}
	for _, note := range one.Notes {
		fmt.Fprintln(s.Stderr, "parley: "+safe(note))
	}
	return []report.Source{one}, err
}

// didYouMean asks for the nearest of names, where one is near.
func didYouMean(name string, names []string) string {
	if n := near.Name(name, names); n != "" {
		return "; did you mean " + n + "?"
	}
	return ""
}
