package manual

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kong"

	"parley/world"
)

// Overview returns the help of the whole application: one line for each command, by group.
func Overview(app *kong.Application) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Usage: %s COMMAND [ARGUMENTS] [FLAGS]\n%s\n", app.Name, app.Help)
	width, group := 0, ""
	for _, n := range children(app.Node) {
		width = max(width, len(n.Name))
	}
	for _, n := range children(app.Node) {
		title := ""
		if n.Group != nil {
			title = n.Group.Title
		}
		if title != group {
			fmt.Fprintf(&b, "\n%s\n", title)
			group = title
		}
		fmt.Fprintf(&b, "  %-*s  %s\n", width, n.Name, n.Help)
	}
	fmt.Fprintf(&b, "\n\"%s COMMAND --help\" explains a command, its arguments and its flags.\n", app.Name)
	return world.Visible(b.String())
}
