package dispatch

import (
	"sync"

	"parley/internal/dispatch/budget"
	"parley/llm"
	"parley/llm/tokengap"
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
	about int // what budget.Model.Oddity says; below 0: a gap in the tokens
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

// answered reports what an answer lacks of the token ids and log probabilities that were asked for.
func (n *notices) answered(req *llm.Request, resp *llm.Response) {
	if n.report == nil || !req.TokenIDs || resp == nil || resp.Text == "" {
		return
	}
	gap := tokengap.Of(resp)
	const none = ", although the run asks for them: its answers cannot become sequences of tokens. "
	switch {
	case gap == tokengap.NoTokenIDs:
		n.once(req, -1, req.Model+" returns no token ids"+none+
			"Use a server that returns them and has token_ids among its capabilities in the plan, or do not ask for them.")
	case gap == tokengap.NoPromptIDs:
		n.once(req, -2, req.Model+" returns no token ids of the prompt (prompt_token_ids)"+none+"Use a server that returns those of prompt and answer.")
	case gap == tokengap.NegativeIDs:
		n.once(req, -3, req.Model+" returns negative token ids: its answers cannot become sequences of tokens. Check the server.")
	case gap == tokengap.NoLogprobs && req.Logprobs:
		n.once(req, -4, req.Model+" returns no log probabilities, although the run asks for them: its sequences of tokens have none. Use a server that returns them.")
	case gap == tokengap.UnevenLogprobs && req.Logprobs:
		n.once(req, -5, req.Model+" does not return one log probability for each token: its sequences of tokens have no log probabilities. Check the server.")
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
