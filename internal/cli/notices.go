package cli

import (
	"fmt"
	"time"

	"parley/internal/ask/dispatch"
	"parley/internal/cli/app"
	"parley/internal/cli/bulk"
	"parley/internal/cli/exit"
	"parley/internal/cli/terminal"
)

// openApp opens the app that c describes. Its errors are usage errors.
func openApp(c app.Config) (bulk.Asker, error) {
	a, err := app.Open(c)
	if err != nil {
		return nil, exit.AsUsage(err)
	}
	return a, nil
}

// outage prints that a provider cannot be reached and the run waits for it, or that it is back.
func (s *State) outage(o dispatch.Outage) {
	fmt.Fprintf(s.err, "parley: %s\n", terminal.Cut(terminal.Safe(terminal.OneLine(o.Text(time.Now()))), 400))
}

// notice prints a warning about the cost of a model, even with --quiet.
func (s *State) notice(n dispatch.Notice) {
	fmt.Fprintf(s.err, "parley: warning: %s\n", terminal.Cut(terminal.Safe(terminal.OneLine(n.Text)), 400))
}
