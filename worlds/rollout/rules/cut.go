package rules

import "parley/llm"

// protocolCut keeps the leading system message and the last 2n-1 others, or all if n is not above 0. It keeps more if the
// result of a tool would lose its call.
func protocolCut(ms []llm.Message, n int) []llm.Message {
	if n <= 0 {
		return ms
	}
	kept, rest := []llm.Message(nil), ms
	if len(ms) > 0 && ms[0].Role == llm.RoleSystem {
		kept, rest = append(kept, ms[0]), ms[1:]
	}
	from := max(0, len(rest)-(2*n-1))
	for from > 0 && rest[from].Role == llm.RoleTool {
		from--
	}
	return append(kept, rest[from:]...)
}
