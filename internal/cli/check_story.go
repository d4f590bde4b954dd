package cli

import (
	"fmt"
	"io"

	"parley/internal/cli/app"
	"parley/internal/cli/terminal"
)

// storyLines is how many lines of an episode are shown.
const storyLines = 40

// printStory writes the beginning of an episode that was played, a line for each thing that happened.
func printStory(w io.Writer, story []app.Moment) {
	if len(story) == 0 {
		return
	}
	fmt.Fprint(w, "One of the episodes:\n")
	n := 0
	for _, m := range story {
		if n >= storyLines {
			fmt.Fprint(w, "  …\n")
			break
		}
		fmt.Fprintf(w, "  %s\n", terminal.Quoted(m.Title))
		for _, l := range m.Lines {
			who := l.Who
			if l.To != "" {
				who += " to " + l.To
			}
			if who != "" {
				who += ": "
			}
			fmt.Fprintf(w, "    %s\n", terminal.Quoted(who+l.Text))
			n++
		}
	}
	fmt.Fprintln(w)
}
