package show

import (
	"fmt"
	"strings"

	"parley/internal/cli/terminal"
	"parley/internal/view/failure"
)

// maxKinds is how many kinds of failures a line lists.
const maxKinds = 6

// FailureLines describe how calls failed, the text of the most frequent failure, and what to do about it.
func FailureLines(failures []failure.Failure, calls int) []string {
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
	first := failures[0]
	lines := []string{fmt.Sprintf("%s of %s failed: %s", terminal.Number(failed), terminal.Several(calls, "call", "calls"), strings.Join(parts, ", "))}
	if first.Example != "" {
		lines = append(lines, "most often: "+terminal.Quoted(first.Example))
	}
	return append(lines, "what to do: "+terminal.Quoted(first.Remedy))
}
