package cli

import (
	"fmt"
	"strings"

	"parley/internal/cli/terminal"
	"parley/internal/run/results"
)

// maxKinds is how many kinds of failures a line lists.
const maxKinds = 6

// showBeside returns what is counted beside calls: ", 40 acts, 12 answers of bots". It is empty if there are none.
func showBeside(acts, bots int) (text string) {
	if acts > 0 {
		text += ", " + terminal.Several(acts, "act", "acts")
	}
	if bots > 0 {
		text += ", " + terminal.Several(bots, "answer of a bot", "answers of bots")
	}
	return text
}

// printBeside prints what is counted beside calls.
func printBeside(p *terminal.Page, acts, bots int) {
	if acts > 0 {
		p.Fact("acts", terminal.Number(acts))
	}
	if bots > 0 {
		p.Fact("bots", "answered "+terminal.Several(bots, "time", "times"))
	}
}

// failureLines describe how calls and acts failed, the text of the most frequent failure, and what to do about it.
func failureLines(failures []results.Failure, calls, acts int) []string {
	if len(failures) == 0 {
		return nil
	}
	failed := 0
	var parts []string
	for i, f := range failures {
		failed += f.Calls
		if i < maxKinds {
			parts = append(parts, terminal.Safe(f.String()))
		}
	}
	if more := len(failures) - maxKinds; more > 0 {
		parts = append(parts, terminal.Several(more, "other sort", "other sorts"))
	}
	of := terminal.Several(calls, "call", "calls")
	if acts > 0 {
		of += " and " + terminal.Several(acts, "act", "acts")
	}
	first := failures[0]
	lines := []string{fmt.Sprintf("%s of %s failed: %s", terminal.Number(failed), of, strings.Join(parts, ", "))}
	if first.Example != "" {
		lines = append(lines, "most often: "+terminal.Quoted(first.Example))
	}
	return append(lines, "what to do: "+terminal.Quoted(first.Remedy))
}
