package dispatch

import (
	"fmt"
	"sync"

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

// settled says what is odd about the usage of an attempt.
func (n *notices) settled(req *llm.Request, worst llm.Money, c charge) {
	if c.verdict != usageMissing || c.cost == 0 {
		return
	}
	text := fmt.Sprintf("%s reports no token usage, so the cost of its calls is estimated from the size of prompts and answers", req.Model)
	if worst > 0 {
		text = fmt.Sprintf("%s reports no token usage, so each of its calls is charged the most that it can cost; a lower max_tokens lowers that", req.Model)
	}
	n.once(req.Model, c.verdict, text)
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
