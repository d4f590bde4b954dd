package budget

import (
	"fmt"

	"parley/internal/ask/dispatch/tokens"
	"parley/llm"
)

// Oddity describes, for the person who pays, what is odd about the usage of an attempt for which
// worst was set aside. It is empty if nothing is. Texts about the same thing have the same about.
func (m *Model) Oddity(req *llm.Request, worst llm.Money, c Charge) (about int, text string) {
	switch {
	case c.Estimated() && worst > 0:
		text = fmt.Sprintf("%s reports no token usage, so each of its calls is charged the most that it can cost; a lower max_tokens lowers that", req.Model)
	case c.Estimated():
		text = fmt.Sprintf("%s reports no token usage, so the cost of its calls is estimated from the size of prompts and answers", req.Model)
	case c.verdict == usageLonger && worst > 0:
		if limit := MaxOutput(m.Price, req); c.used.Output-endTokens > limit {
			text = fmt.Sprintf("%s answered with %d tokens when asked for at most %d: it does not keep the limit. From now on the price of %d tokens is set aside for each of its calls, and the budget may be used up sooner",
				req.Model, c.used.Output, limit, unlimited(m.Price, c.used.Output))
		} else {
			text = fmt.Sprintf("%s counted %d input tokens for a prompt of %d bytes, so that a call cost more than was set aside for it. From now on more is set aside",
				req.Model, inputOf(c.used), tokens.SizeOf(req).Bytes)
		}
	}
	return int(c.verdict), text
}
