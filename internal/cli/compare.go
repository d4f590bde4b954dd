package cli

import (
	"context"
	"errors"
	"slices"
	"strings"

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
	All     bool     `help:"Show every comparison. Default: where there are more than 20, the 20 of most interest."`
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
	runs := make([]*view.Run, len(sources))
	for i := range sources {
		runs[i] = sources[i].Run
	}
	result, err := compare.Runs(runs, report.Names(sources), compare.Config{By: c.By, Correct: c.Correct, Scores: c.Score, Against: c.Against, All: c.All})
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

// didYouMean asks for the nearest of names, where one is near.
func didYouMean(name string, names []string) string {
	if n := near.Name(name, names); n != "" {
		return "; did you mean " + n + "?"
	}
	return ""
}
