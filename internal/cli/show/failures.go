package show

import (
	"fmt"
	"strings"

	"parley/internal/cli/terminal"
	"parley/internal/view/failure"
)

// maxKinds is how many kinds of failures are listed in a line.
const maxKinds = 6

// FailureLines say how calls failed, what the commonest failure said, and what can be done about it.
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
