package sqlite

import (
	"errors"

	"parley/journal"
	"parley/llm"
)

// What replies.flags is made of.
const (
	flagAnswered = 1 << iota
	flagFailed
	flagAsked
	flagCopied
	flagCached
	flagCoalesced
	flagHedged
	flagFinal
	flagUncertain
	flagAct
	flagEstimated
)

const repliedColumns = `seq, prev, flags, episode, attempt, strand, turn, place, seat, label, agent, at,
	settings, prompt, roles, sample, prefix, session, queue, act, body,
	answer, json, rest, finish, model, provider, id, request_id, tier,
	input, cached, cache_write, cache_write_long, output, reasoning,
	tries, parsed, cost, first_byte, latency, waited,
	error, message, status, code, retry_after`

const putRepliedSQL = `INSERT INTO replies (` + repliedColumns + `)
	VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,  ?, ?, ?, ?, ?, ?, ?, ?, ?,  ?, ?, ?, ?, ?, ?, ?, ?, ?,
		?, ?, ?, ?, ?, ?,  ?, ?, ?, ?, ?, ?,  ?, ?, ?, ?, ?)`

// reply is a Replied as its row has it: an answer and a failure share columns.
type reply struct {
	flags            int64
	settings, answer int64 // texts
	prompt, roles    string
	rest             string
	model, provider  string
	requestID        string
	usage            llm.Usage
	trail            llm.Trail
}

func (w *writer) putReplied(e *journal.Replied) error {
	if e.Response != nil && e.Error != nil {
		return errors.New("it has both a response and an error")
	}
	p, prev, err := w.step(e.Episode, w.seq)
	if err != nil {
		return err
	}
	p.Replied(e)
	v, err := w.newReply(e)
	if err != nil {
		return err
	}
	s, err := w.conn.Prepare(putRepliedSQL)
	if err != nil {
		return err
	}
	r := row{s: s}
	r.int(w.seq)
	r.int(prev)
	r.int(v.flags)
	r.turn(e.Turn)
	r.int(int64(e.Index))
	r.str(e.Seat)
	r.str(e.Label)
	r.str(e.Agent)
	r.time(e.At)
	r.asked(e, v)
	r.answered(e.Response, v)
	r.spent(v)
	r.failed(e.Error)
	return r.do()
}

// newReply stores the texts of e and gathers the rest.
func (w *writer) newReply(e *journal.Replied) (v *reply, err error) {
	v = &reply{flags: flag(e.Copied, flagCopied) | flag(e.Request != nil, flagAsked) | flag(e.Act != nil, flagAct)}
	if e.Request != nil {
		if err := w.putRequest(e.Request, v); err != nil {
			return nil, err
		}
	}
	if a := e.Response; a != nil {
		v.flags |= flagAnswered
		v.model, v.provider, v.requestID, v.usage, v.trail = a.Model, a.Provider, a.RequestID, a.Usage, a.Trail
		if a.Text != "" {
			if v.answer, err = w.shared(a.Text); err != nil {
				return nil, err
			}
		}
		if v.rest, err = encodeAnswer(a); err != nil {
			return nil, err
		}
	}
	if f := e.Error; f != nil {
		v.flags |= flagFailed | flag(f.Final, flagFinal) | flag(f.Uncertain, flagUncertain)
		v.model, v.provider, v.requestID, v.usage, v.trail = f.Model, f.Provider, f.RequestID, f.Usage, f.Trail
	}
	v.flags |= flag(v.trail.Cached, flagCached) | flag(v.trail.Coalesced, flagCoalesced) | flag(v.trail.Hedged, flagHedged) | flag(v.trail.Estimated, flagEstimated)
	return v, nil
}

func flag(set bool, bit int64) int64 {
	if set {
		return bit
	}
	return 0
}

func (w *writer) putRequest(q *llm.Request, v *reply) (err error) {
	k := w.print.settings(q)
	id, ok := w.keys.find(k)
	if !ok {
		text, err := encode(newSettings(q))
		if err != nil {
			return err
		}
		if id, err = w.store(k, text, ""); err != nil {
			return err
		}
	}
	v.settings = id
	w.ids, w.roles = w.ids[:0], w.roles[:0]
	for i := range q.Messages {
		id, err := w.said(&q.Messages[i])
		if err != nil {
			return err
		}
		w.ids = append(w.ids, id)
		w.roles = append(w.roles, letter(q.Messages[i].Role))
	}
	w.list = appendList(w.list[:0], w.ids)
	v.prompt, v.roles = string(w.list), string(w.roles)
	return nil
}

func (r *row) asked(e *journal.Replied, v *reply) {
	r.id(v.settings)
	if q := e.Request; q != nil {
		r.str(v.prompt)
		r.str(v.roles)
		r.int(int64(q.Sample))
		r.int(int64(q.Prefix))
		r.opt(q.Session)
		r.int(q.Order)
	} else {
		r.nulls(6)
	}
	if a := e.Act; a != nil {
		r.str(a.Name)
		r.raw(a.Body)
	} else {
		r.nulls(2)
	}
}

func (r *row) answered(a *llm.Response, v *reply) {
	r.id(v.answer)
	if a == nil {
		a = &llm.Response{}
	}
	if a.Text != "" && string(a.JSON) == a.Text {
		r.int(1)
	} else {
		r.raw(a.JSON)
	}
	r.opt(v.rest)
	r.opt(string(a.Finish))
	r.opt(v.model)
	r.opt(v.provider)
	r.opt(a.ID)
	r.opt(v.requestID)
	r.opt(a.Tier)
}

func (r *row) spent(v *reply) {
	u, t := v.usage, v.trail
	for _, n := range [...]int{u.Input, u.Cached, u.CacheWrite, u.CacheWriteLong, u.Output, u.Reasoning, t.Attempts} {
		r.int(int64(n))
	}
	r.opt(t.Parsed)
	r.int(int64(t.Cost))
	r.int(int64(t.FirstByte))
	r.int(int64(t.Latency))
	r.int(int64(t.Waited))
}

func (r *row) failed(f *llm.Error) {
	if f == nil {
		r.nulls(5)
		return
	}
	r.str(string(f.Kind))
	r.str(f.Message)
	r.int(int64(f.Status))
	r.opt(f.Code)
	r.int(int64(f.RetryAfter))
}

func (r *row) nulls(n int) {
	for range n {
		r.null()
	}
}

// answerRest is what an answer has that has no column: what most have not.
type answerRest struct {
	Refusal        string         `json:"refusal,omitempty"`
	Thoughts       []llm.Thought  `json:"thoughts,omitempty"`
	ToolCalls      []llm.ToolCall `json:"tool_calls,omitempty"`
	Logprobs       []llm.Logprob  `json:"logprobs,omitempty"`
	TokenIDs       []int          `json:"token_ids,omitempty"`
	PromptTokenIDs []int          `json:"prompt_token_ids,omitempty"`
	WeightVersion  string         `json:"weight_version,omitempty"`
	Dropped        []string       `json:"dropped,omitempty"`
}

func encodeAnswer(a *llm.Response) (string, error) {
	if a.Refusal == "" && a.WeightVersion == "" && len(a.Thoughts)+len(a.ToolCalls)+len(a.Logprobs)+len(a.TokenIDs)+len(a.PromptTokenIDs)+len(a.Dropped) == 0 {
		return "", nil
	}
	return encode(answerRest{a.Refusal, a.Thoughts, a.ToolCalls, a.Logprobs, a.TokenIDs, a.PromptTokenIDs, a.WeightVersion, a.Dropped})
}
