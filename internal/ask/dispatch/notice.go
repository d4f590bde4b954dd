package dispatch

import (
	"sync"

	"parley/internal/ask/dispatch/budget"
	"parley/llm"
)

// Notice is something about a model that the person who pays should know.
type Notice struct {
	Model string // written provider/model
	Text  string // complete sentences that name the model
	// Dropped is the parameter that the model does not take, as Response.Dropped has it. Empty: it is about something else.
	Dropped string
}

// notices reports each Notice once for each model.
type notices struct {
	events func(Event)

	mu       sync.Mutex
	reported map[noticeKey]bool
}

type noticeKey struct {
	model   string
	about   int // what budget.Model.Oddity says; below 0: a gap in the tokens
	dropped string
}

// settled reports what is odd about the usage of an attempt for which worst was set aside.
func (n *notices) settled(m *budget.Model, req *llm.Request, worst llm.Money, c budget.Charge) {
	if about, text := m.Oddity(req, worst, c); text != "" {
		n.once(noticeKey{model: req.Model, about: about}, text)
	}
}

// answered reports what was left out of a request, and what its answer lacks.
func (n *notices) answered(req *llm.Request, resp *llm.Response) {
	if resp == nil {
		return
	}
	n.dropped(req, resp.Dropped)
	if req.TokenIDs && resp.Text != "" {
		n.gap(req, resp)
	}
}

// dropped reports the parameters that a model does not take. It leaves out the schema, which the prompt holds instead, token ids, which
// have their own Notice, and names that a client of the gateway made up.
func (n *notices) dropped(req *llm.Request, names []string) {
	for _, name := range names {
		switch name {
		case "temperature", "top_p", "top_k", "frequency_penalty", "presence_penalty", "seed", "stop", "effort", "logprobs", "prefill", "tools", "tool_choice", "one_tool", "tier":
			n.once(noticeKey{model: req.Model, dropped: name}, DroppedText(req.Model, name))
		}
	}
}

// DroppedText says that a model does not take a parameter.
func DroppedText(model, name string) string {
	return model + " takes no " + name + ": it is left out"
}

// gap reports what an answer lacks of the token ids and log probabilities that were asked for.
func (n *notices) gap(req *llm.Request, resp *llm.Response) {
	lacks := func(about int, text string) { n.once(noticeKey{model: req.Model, about: about}, text) }
	gap := llm.Of(resp)
	const none = ", although the run asks for them: its answers cannot become sequences of tokens. "
	switch {
	case gap == llm.NoTokenIDs:
		lacks(-1, req.Model+" returns no token ids"+none+
			"Use a server that returns them and has token_ids among its capabilities in the plan, or do not ask for them.")
	case gap == llm.NoPromptIDs:
		lacks(-2, req.Model+" returns no token ids of the prompt (prompt_token_ids)"+none+"Use a server that returns those of prompt and answer.")
	case gap == llm.NegativeIDs:
		lacks(-3, req.Model+" returns negative token ids: its answers cannot become sequences of tokens. Check the server.")
	case gap == llm.NoLogprobs && req.Logprobs:
		lacks(-4, req.Model+" returns no log probabilities, although the run asks for them: its sequences of tokens have none. Use a server that returns them.")
	case gap == llm.UnevenLogprobs && req.Logprobs:
		lacks(-5, req.Model+" does not return one log probability for each token: its sequences of tokens have no log probabilities. Check the server.")
	}
}

// once reports a Notice, if it is the first about it for the model.
func (n *notices) once(k noticeKey, text string) {
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
		n.events(Event{Notice: &Notice{Model: k.model, Text: text, Dropped: k.dropped}})
	}
}
