package dispatch

import (
	"fmt"
	"sync"

	"parley/internal/dispatch/tokens"
	"parley/llm"
)

// Notice is something about a model that whoever pays should know.
type Notice struct {
	Model string // written provider/model
	Text  string // whole sentences that name the model
}

// notices tells each Notice once for each model.
type notices struct {
	tell func(Notice) // nil: nobody listens

	mu   sync.Mutex
	told map[noticeKey]bool
}

type noticeKey struct {
	model string
	about verdict
}

// settled says what is odd about the usage of an attempt for which worst was set aside.
func (n *notices) settled(known *entry, req *llm.Request, worst llm.Money, c charge) {
	switch {
	case c.verdict == usageMissing && c.cost > 0:
		text := "%s reports no token usage, so the cost of its calls is estimated from the size of prompts and answers"
		if worst > 0 {
			text = "%s reports no token usage, so each of its calls is charged the most that it can cost; a lower max_tokens lowers that"
		}
		n.once(req.Model, c.verdict, fmt.Sprintf(text, req.Model))
	case c.verdict == usageLonger && worst > 0:
		n.once(req.Model, c.verdict, longer(known, req, c.used))
	}
}

// longer says by how much a model went beyond what was asked for, and what follows.
func longer(known *entry, req *llm.Request, u llm.Usage) string {
	if most := outputOf(known.price, req); u.Output-endTokens > most {
		return fmt.Sprintf("%s answered with %d tokens when asked for at most %d: it does not keep the limit. From now on the price of %d tokens is set aside for each of its calls, and the budget may be used up sooner",
			req.Model, u.Output, most, unlimited(known.price, u.Output))
	}
	return fmt.Sprintf("%s counted %d input tokens for a prompt of %d bytes, so that a call cost more than was set aside for it. From now on more is set aside",
		req.Model, inputOf(u), tokens.SizeOf(req).Bytes)
}

func (n *notices) once(model string, about verdict, text string) {
	if n.tell == nil {
		return
	}
	k := noticeKey{model, about}
	n.mu.Lock()
	if n.told == nil {
		n.told = map[noticeKey]bool{}
	}
	first := !n.told[k] && len(n.told) < maxModels
	if first {
		n.told[k] = true
	}
	n.mu.Unlock()
	if first {
		n.tell(Notice{Model: model, Text: text})
	}
}
