package dispatch

import (
	"sync"

	"parley/internal/dispatch/budget"
	"parley/llm"
)

// Notice is something about a model that the person who pays should know.
type Notice struct {
	Model string // written provider/model
	Text  string // complete sentences that name the model
}

// notices reports each Notice once for each model.
type notices struct {
	report func(Notice) // nil: nobody listens

	mu       sync.Mutex
	reported map[noticeKey]bool
}

type noticeKey struct {
	model string
	about int
}

// settled reports what is odd about the usage of an attempt for which worst was set aside.
func (n *notices) settled(m *budget.Model, req *llm.Request, worst llm.Money, c budget.Charge) {
	if n.report == nil {
		return
	}
	about, text := m.Oddity(req, worst, c)
	if text == "" {
		return
	}
	k := noticeKey{req.Model, about}
	n.mu.Lock()
	if n.reported == nil {
		n.reported = map[noticeKey]bool{}
	}
	first := !n.reported[k] && len(n.reported) < maxModels
	if first {
		n.reported[k] = true
	}
	n.mu.Unlock()
	if first {
		n.report(Notice{Model: req.Model, Text: text})
	}
}
