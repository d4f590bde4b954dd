package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"parley/internal/cli/exit"
	"parley/internal/cli/terminal"
	"parley/internal/read/report"
	"parley/internal/run/merge"
	"parley/internal/run/results"
)

// compareCmd compares runs, or groups of episodes within a run.
type compareCmd struct {
	Files      []string `arg:"" placeholder:"FILE" help:"Run files to compare with each other; or one file, to compare its agents, models or cells."`
	By         []string `placeholder:"FACTOR" help:"What to compare: file, agent, model, seat, lineup, cell, variation, a tag or a param. Give several, separated by commas. Default: file if there are several files, else agent."`
	Score      []string `placeholder:"NAME" help:"Only this score. Repeatable."`
	Against    string   `placeholder:"NAME" help:"Compare all others with this one. Default: every pair."`
	Correction string   `enum:"holm,bh,none" default:"holm" placeholder:"METHOD" help:"How to correct p for the number of comparisons: holm, bh (Benjamini and Hochberg) or none. Default: ${default}."`
	All        bool     `help:"Print a table of all comparisons. The default is sentences on the most interesting ones."`
	CountAll   bool     `help:"Count every episode that ended, also if a run is not complete. Short episodes end first, so the numbers are biased."`
	tableFlags
}

// Run prints the comparison.
func (c *compareCmd) Run(ctx context.Context, s *State) (err error) {
	if err := c.check(c.Files); err != nil {
		return err
	}
	ctx, end := untilSignal(ctx, s)
	defer end()
	var sources []report.Source
	stores, err := readRuns(ctx, s, c.Files, func(runs []report.Source) error {
		sources = runs
		return nil
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stores.close()) }()
	sources, notes, err := c.merged(ctx, s, sources)
	if err != nil {
		return err
	}
	countAll(sources, c.CountAll)
	runs := make([]*results.Run, len(sources))
	biased := false
	for i := range sources {
		biased = biased || sources[i].Run.Biased()
		runs[i] = sources[i].Run
		if left := report.TagsLeftOut(runs[i]); left != "" {
			notes = append(notes, left)
		}
		if again := report.AgainText(runs[i].Head.Begun.Again); again != "" {
			notes = append(notes, report.Names(sources)[i]+": "+again)
		}
	}
	result, err := report.Compare(runs, report.Names(sources), report.CompareConfig{By: strings.Join(c.By, ","), Correct: c.Correction, Scores: c.Score, Against: c.Against, All: c.All})
	if err != nil {
		if errors.Is(err, report.ErrUnknown) {
			return exit.Usagef("%w", err)
		}
		if errors.Is(err, report.ErrNothingToCompare) {
			return exit.Usagef("%w\nname another file, or compare something else: --by %s, a tag or a param", err, strings.Join(results.OwnFactors(), ", "))
		}
		return factorError(err)
	}
	d := result.Document(Version())
	if len(notes) > 0 {
		d.Sections[0].Blocks = append([]report.Block{{Text: strings.Join(notes, " ")}}, d.Sections[0].Blocks...)
	}
	if len(c.By) > 1 {
		factors, err := results.FactorsOf(runs, report.Names(sources), c.By)
		if err != nil {
			return factorError(err)
		}
		effects := []report.Section{report.EffectsSection(report.AnalyzeFactors(runs, factors, c.Score, c.Correction))}
		if biased {
			report.Caution(effects, results.BiasedNote)
		}
		d.Sections = append(d.Sections, effects...)
	}
	if err := c.show(s, d, c.Files); err != nil {
		return err
	}
	return reportLosses(s, stores...)
}

// merged reads runs as one unless they are compared with each other. Its notes name the episodes that several
// runs contain.
func (c *compareCmd) merged(ctx context.Context, s *State, runs []report.Source) (_ []report.Source, notes []string, err error) {
	defer func() {
		for _, note := range notes {
			fmt.Fprintln(s.Stderr, "parley: "+terminal.Safe(note))
		}
	}()
	if len(runs) < 2 {
		return runs, nil, nil
	}
	if len(c.By) == 0 || slices.Contains(c.By, report.ByFile) {
		_, shared, err := merge.Duplicates(ctx, mergeable(runs))
		for _, both := range shared {
			notes = append(notes, fmt.Sprintf("%s in both %s and %s, and counted in both", terminal.Several(both.Episodes, "episode is", "episodes are"), both.First, both.Second))
		}
		return runs, notes, err
	}
	one, err := oneRun(ctx, runs)
	if conflict, ok := errors.AsType[*merge.ConflictError](err); ok {
		return runs, []string{"The runs are not parts of one experiment, but their episodes are counted together: " + conflict.What}, nil
	}
	return []report.Source{one}, one.Notes, err
}

// factorError reports a --by that is not a factor.
func factorError(err error) error {
	if errors.Is(err, results.ErrFactor) {
		return exit.Usagef("--by: %w", err)
	}
	return err
}
