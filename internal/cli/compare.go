package cli

import (
	"context"
	"errors"
	"fmt"

	"parley/internal/report"
	"parley/internal/report/compare"
	"parley/internal/view"
)

// compareCmd says what differs.
type compareCmd struct {
	Files   []string `arg:"" placeholder:"FILE" help:"Run files to compare with each other; or one, whose agents, models or cells are compared."`
	By      string   `enum:"file,agent,model,cell," default:"" placeholder:"WHAT" help:"What to compare: file, agent, model or cell. Default: file where there are several, else agent."`
	Score   []string `placeholder:"NAME" help:"Only this score. May be given several times."`
	Against string   `placeholder:"NAME" help:"Compare all others with this one. Default: each with each."`
	Correct string   `enum:"holm,bh,none" default:"holm" placeholder:"METHOD" help:"How to correct for the number of comparisons: holm, bh (Benjamini and Hochberg) or none. Default: ${default}."`
	HTML    string   `name:"html" placeholder:"OUT" help:"Write one page that needs nothing else."`
	tableFlags
}

// Run compares.
func (c *compareCmd) Run(ctx context.Context, s *State) (err error) {
	if err := spare(c.HTML, c.Files); err != nil {
		return err
	}
	sources, closeAll, err := openRuns(ctx, c.Files)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeAll()) }()
	runs := make([]*view.Run, len(sources))
	for i := range sources {
		runs[i] = sources[i].Run
	}
	result, err := compare.Runs(runs, report.Names(sources), compare.Config{By: c.By, Correct: c.Correct, Scores: c.Score, Against: c.Against})
	if err != nil {
		if errors.Is(err, compare.ErrOne) {
			return usage("%w\nname another file, or compare something else: --by file, agent, model or cell", err)
		}
		return err
	}
	d := result.Document(version())
	if err := c.show(s, d); err != nil {
		return err
	}
	if c.HTML == "" {
		return nil
	}
	if err := replaceFile(c.HTML, d.WriteHTML); err != nil {
		return fmt.Errorf("compare: --html: %w", err)
	}
	fmt.Fprintf(s.Stderr, "parley: the page is %s\n", c.HTML)
	return nil
}
