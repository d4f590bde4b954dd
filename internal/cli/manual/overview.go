package manual

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kong"

	"parley/world"
)

// Overview returns the help of the whole application: one line for each command, by group. Commands
// for the shell share a line: few people need them, and their names say what they do.
func Overview(app *kong.Application) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Usage: %s COMMAND [ARGUMENTS] [FLAGS]\n%s\n", app.Name, app.Help)
	width, group := 0, ""
	var shell []string
	for _, n := range children(app.Node) {
		width = max(width, len(n.Name))
	}
	for _, n := range children(app.Node) {
		title := ""
		if n.Group != nil {
			title = n.Group.Title
			if n.Group.Key == "shell" {
				shell = append(shell, n.Name)
				continue
			}
		}
		if title != group {
			fmt.Fprintf(&b, "\n%s\n", title)
			group = title
		}
		fmt.Fprintf(&b, "  %-*s  %s\n", width, n.Name, n.Help)
	}
	b.WriteByte('\n')
	if len(shell) > 0 {
		fmt.Fprintf(&b, "Shell: %s\n", strings.Join(shell, ", "))
	}
	fmt.Fprintf(&b, "\"%s COMMAND --help\" explains a command, its arguments and its flags.\n", app.Name)
	return world.Visible(b.String())
}
