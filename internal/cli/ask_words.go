package cli

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"parley/internal/cli/app"
	"parley/internal/cli/bulk"
	"parley/internal/cli/exit"
	"parley/internal/cli/terminal"
)

// checkWords refuses arguments that name files and would be asked as a prompt.
func (c *askCmd) checkWords() error {
	if len(c.Words) > 1 && (c.JSONL || slices.ContainsFunc(c.Words, isJSONL)) {
		return exit.Usagef("ask takes one file of requests; the records go to the file of --out. If it is a prompt, put it in quotes")
	}
	if len(c.Words) != 1 || c.JSONL || isJSONL(c.Words[0]) {
		return nil
	}
	word := c.Words[0]
	if info, err := os.Stat(word); word == "-" || err != nil || !info.Mode().IsRegular() {
		return nil //nolint:nilerr // it is a prompt
	}
	name := terminal.ShellWord(word)
	return exit.Usagef("%s is a file, and not a prompt: ask the requests in it with --jsonl %s, its text with parley ask - < %s, something about it with --attach %s \"PROMPT\", or the word itself with echo %s | parley ask -",
		terminal.Safe(word), name, name, name, name)
}

// isJSONL reports whether a word names a file of requests.
func isJSONL(word string) bool {
	return strings.HasSuffix(word, ".jsonl") && !strings.ContainsAny(word, " \t\n")
}

// tellSimulated says that answers are simulated, if the user may expect a real model.
func (c *askCmd) tellSimulated(s *State, n bulk.Counts, cfg app.Config) {
	if c.Model == nil && !c.Quiet && n.Unnamed > 0 && len(cfg.Providers) > 0 && cfg.Providers[0].Dialect == "sim" {
		fmt.Fprintf(s.Stderr, "parley: answered by %s, which is simulated; name a model with --model\n", c.model)
	}
}

// tellUnasked says how many requests a stop left, and what to do.
func (c *askCmd) tellUnasked(s *State, g *exit.Gate, n int) {
	if n == 0 || c.Quiet || c.JSON {
		return
	}
	todo := "run the same command again"
	if c.Out == "" {
		todo = "with --out FILE, a stopped command asks only what is missing when you run it again"
	} else if code, _ := g.Reason(); code == exit.Budget {
		todo += " with a larger --budget"
	}
	fmt.Fprintf(s.Stderr, "parley: %s not asked: %s\n", terminal.Number(n), todo)
}
