package cli

import (
	"io"
	"strings"

	"github.com/alecthomas/kong"

	"parley/internal/cli/exit"
)

// completionCmd prints the completion script of a shell.
type completionCmd struct {
	Shell string `arg:"" enum:"${shells}" help:"The shell: ${enum}."`
}

// Run prints the script.
func (c completionCmd) Run(s *State, app *kong.Application) error {
	script, ok := completion(app, c.Shell)
	if !ok {
		return exit.Usagef("completion: no completions for %q; want one of %s", c.Shell, strings.Join(shells(), ", "))
	}
	_, err := io.WriteString(s.Stdout, script)
	return err
}

// manCmd prints the man page.
type manCmd struct{}

// Run prints the page as roff.
func (manCmd) Run(s *State, app *kong.Application) error {
	b := thisBuild()
	date, _, _ := strings.Cut(b.Date, "T")
	_, err := io.WriteString(s.Stdout, manualPage(app, b.Version, date))
	return err
}
