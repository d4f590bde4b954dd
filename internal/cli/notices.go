package cli

import (
	"fmt"
	"time"

	"parley/internal/app"
	"parley/internal/cli/bulk"
	"parley/internal/cli/exit"
	"parley/internal/cli/terminal"
	"parley/internal/dispatch"
	"parley/internal/dispatch/outage"
)

// openApp puts together what c describes. Whatever it objects to is the user's to change.
func openApp(c app.Config) (bulk.Asker, error) {
	a, err := app.Open(c)
	if err != nil {
		return nil, exit.AsUsage(err)
	}
	return a, nil
}

// outage writes that a provider cannot be reached and is waited for, or that it is back.
func (s *State) outage(o outage.Outage) {
	fmt.Fprintf(s.err, "parley: %s\n", terminal.Cut(terminal.Safe(terminal.OneLine(o.Text(time.Now()))), 400))
}

// notice writes what somebody who pays should know of a model. Not even a quiet verb keeps
// that to itself.
func (s *State) notice(n dispatch.Notice) {
	fmt.Fprintf(s.err, "parley: warning: %s\n", terminal.Cut(terminal.Safe(terminal.OneLine(n.Text)), 400))
}
