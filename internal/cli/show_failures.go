package cli

import (
	"fmt"
	"strings"

	"parley/internal/view"
)

// mostKinds is how many kinds of failures are listed in a line.
const mostKinds = 6

// failureLines say how calls failed, what the commonest failure said, and what can be done about it.
func failureLines(failures []view.Failure, calls int) []string {
	if len(failures) == 0 {
		return nil
	}
	failed := 0
	var parts []string
	for i, f := range failures {
		failed += f.Calls
		if i < mostKinds {
			parts = append(parts, safe(f.String()))
		}
	}
	if more := len(failures) - mostKinds; more > 0 {
		parts = append(parts, several(more, "other sort", "other sorts"))
	}
	first := failures[0]
	lines := []string{fmt.Sprintf("%s of %s failed: %s", number(failed), several(calls, "call", "calls"), strings.Join(parts, ", "))}
	if first.Example != "" {
		lines = append(lines, "most often: "+quoted(first.Example))
	}
	return append(lines, "what to do: "+quoted(first.Remedy))
}
