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
	if about, text := m.Oddity(req, worst, c); text != "" {
		n.once(req, about, text)
	}
}

// noTokens is about answers without the token ids that were asked for.
const noTokens = -1

// answered reports an answer without the token ids that were asked for.
func (n *notices) answered(req *llm.Request, resp *llm.Response) {
	if n.report != nil && req.TokenIDs && resp != nil && len(resp.TokenIDs) == 0 && resp.Text != "" {
		n.once(req, noTokens, req.Model+" returns no token ids, although the run asks for them: its answers cannot become sequences of tokens. "+
			"Use a server that returns them and has token_ids among its capabilities in the plan, or do not ask for them.")
	}
}

// once reports a Notice, if it is the first about it for the model.
func (n *notices) once(req *llm.Request, about int, text string) {
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
