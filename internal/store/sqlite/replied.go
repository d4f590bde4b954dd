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

// The columns of replies, in groups that have a checksum each. The number and the checksums
// are before them.
const (
	coreColumns    = `prev, flags, episode, attempt, strand, turn, place, cost, input, output, finish, error, answer`
	answerColumns  = `json, rest`
	accountColumns = `seat, label, agent, at, settings, model, provider, tier, cached, cache_write, cache_write_long, reasoning,
		tries, parsed, first_byte, latency, waited, message, status, code, retry_after`
	requestColumns = `prompt, roles, sample, prefix, session, queue, act, body, id, request_id`
	repliedColumns = `seq, sum, sum2, ` + coreColumns + `, ` + answerColumns + `, ` + accountColumns + `, ` + requestColumns
)

const putRepliedSQL = `INSERT INTO replies (` + repliedColumns + `)
	VALUES (?, ?, ?,  ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,  ?, ?,  ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,
		?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

// reply is a Replied as its row has it: an answer and a failure share columns.
type reply struct {
	flags            int64
	settings, answer int64 // texts
	prompt, roles    string
	rest             string
	model, provider  string
	requestID        string
	usage            llm.Usage
	trail            llm.Metadata
}

func (w *writer) putReplied(e *journal.Replied) error {
	if e.Response != nil && e.Error != nil {
		return errors.New("it has both a response and an error")
	}
	p, prev, err := w.step(e.Episode, w.totals.seq)
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
	answer := e.Response
	if answer == nil {
		answer = &llm.Response{}
	}
	r.begin(tableReplies, w.totals.seq, 2)
	r.int(prev)
	r.int(v.flags)
	r.turn(e.Turn)
	r.int(int64(e.Index))
	r.int(int64(v.trail.Cost))
	r.int(int64(v.usage.Input))
	r.int(int64(v.usage.Output))
	r.opt(string(answer.Finish))
	if e.Error != nil {
		r.str(string(e.Error.Kind))
	} else {
		r.null()
	}
	r.id(v.answer)
	r.seal()
	r.answered(answer, v)
	r.account(e, v, answer.Tier)
	r.asked(e, v, answer.ID)
	w.totals.calls++
	w.totals.spent = int64(llm.Money(w.totals.spent).Plus(e.Cost()))
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
		v.model, v.provider, v.requestID, v.usage, v.trail = a.Model, a.Provider, a.RequestID, a.Usage, a.Metadata
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
		v.model, v.provider, v.requestID, v.usage, v.trail = f.Model, f.Provider, f.RequestID, f.Usage, f.Metadata
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

// account fills in who was asked, who answered, and what it took.
func (r *row) account(e *journal.Replied, v *reply, tier string) {
	r.str(e.Seat)
	r.str(e.Label)
	r.str(e.Agent)
	r.time(e.At)
	r.id(v.settings)
	r.opt(v.model)
	r.opt(v.provider)
	r.opt(tier)
	u, t := v.usage, v.trail
	for _, n := range [...]int{u.Cached, u.CacheWrite, u.CacheWriteLong, u.Reasoning, t.Attempts} {
		r.int(int64(n))
	}
	r.opt(t.Parsed)
	r.int(int64(t.FirstByte))
	r.int(int64(t.Latency))
	r.int(int64(t.Waited))
	if f := e.Error; f != nil {
		r.str(f.Message)
		r.int(int64(f.Status))
		r.opt(f.Code)
		r.int(int64(f.RetryAfter))
	} else {
		r.nulls(4)
	}
	r.seal()
}

// answered fills in what else the answer is.
func (r *row) answered(a *llm.Response, v *reply) {
	if a.Text != "" && string(a.JSON) == a.Text {
		r.int(1)
	} else {
		r.raw(a.JSON)
	}
	r.opt(v.rest)
	r.seal()
}

// asked fills in what was asked.
func (r *row) asked(e *journal.Replied, v *reply, id string) {
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
	r.opt(id)
	r.opt(v.requestID)
	r.seal()
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
