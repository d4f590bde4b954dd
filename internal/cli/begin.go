package cli

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"parley/internal/cli/terminal"
	"parley/internal/run/planfile"
)

// printNext says what somebody who typed only the name of the program can do next with the files in this folder.
func printNext(ctx context.Context, w io.Writer) error {
	plan, run := firstPlan(ctx), firstRun()
	var next [][2]string
	add := func(command, does string) { next = append(next, [2]string{command, does}) }
	switch {
	case run != "":
		add("parley report "+terminal.ShellWord(run), "what came out of the run")
		add("parley show "+terminal.ShellWord(run), "its episodes, and what was said")
		add("parley view", "the same as web pages")
	case plan != "":
		add("parley check "+terminal.ShellWord(plan), "what the plan takes; nothing is asked")
		add("parley run "+terminal.ShellWord(plan), "play it")
		add("parley view", "see it as web pages, while it plays")
	default:
		add("parley init secrets", "write a plan file to begin with")
		add("parley run secrets.yaml", "play it: simulated models, no key")
		add(`parley ask --model sim/small "Say hello"`, "ask a model, or a file of questions")
	}
	width := 0
	for _, one := range next {
		width = max(width, len(one[0]))
	}
	var b strings.Builder
	b.WriteString("Parley runs very many interactions of language models at once.\n\n")
	for _, one := range next {
		fmt.Fprintf(&b, "  %-*s   %s\n", width, one[0], one[1])
	}
	b.WriteString("\nparley --help lists all commands.\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// firstRun and firstPlan return the first file of that sort in the current folder, by name. Empty: there is none.
func firstRun() string {
	found, _ := filepath.Glob("*.parley") // the pattern is valid
	if len(found) == 0 {
		return ""
	}
	return found[0]
}

func firstPlan(ctx context.Context) string {
	found, _ := filepath.Glob("*.y*ml")
	for _, name := range found {
		if isPlan(name) && planfile.Peek(ctx, name).Kind != "" {
			return name
		}
	}
	return ""
}
