package cli

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kong"

	"parley/world"
)

// overview returns the help of the whole application: one line for each command, by group. Commands
// for the shell and for several machines share a line: few people need them, and their names say what they do.
func overview(app *kong.Application) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Usage: %s COMMAND [ARGUMENTS] [FLAGS]\n%s\n", app.Name, app.Help)
	width, group := 0, ""
	short := map[string][]string{}
	for _, n := range children(app.Node) {
		width = max(width, len(n.Name))
	}
	for _, n := range children(app.Node) {
		title := ""
		if n.Group != nil {
			title = n.Group.Title
			if n.Group.Key == "shell" || n.Group.Key == "cluster" {
				short[n.Group.Key] = append(short[n.Group.Key], n.Name)
				continue
			}
		}
		if title != group {
			fmt.Fprintf(&b, "\n%s\n", title)
			group = title
		}
		fmt.Fprintf(&b, "  %-*s  %s\n", width, n.Name, n.Help)
	}
	var line []string
	if list := short["cluster"]; len(list) > 0 {
		line = append(line, "Clusters: "+strings.Join(list, ", "))
	}
	if list := short["shell"]; len(list) > 0 {
		line = append(line, "Shell: "+strings.Join(list, ", "))
	}
	if len(line) > 0 {
		fmt.Fprintf(&b, "\n%s\n", strings.Join(line, ". "))
	}
	fmt.Fprintf(&b, "\"%s COMMAND --help\" explains a command, its arguments and its flags.\n", app.Name)
	return world.Visible(b.String())
}
