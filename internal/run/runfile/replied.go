package runfile

import (
	"errors"

	"parley/journal"
	"parley/llm"
)

// The bits of replies.flags.
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

func flag(set bool, bit int64) int64 {
	if set {
		return bit
	}
	return 0
}

// The columns of replies, in groups with a checksum each. The key and the checksums are
// before them.
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

// replyRow is a Replied as its row has it: an answer and a failure share columns.
type replyRow struct {
	*journal.Replied
	flags            int64
	settings, answer int64 // ids of texts
	prompt, roles    string
	rest             string
	// The answer, or as much of it as a failure has.
	response llm.Response
}

func (w *writer) putReplied(e *journal.Replied) error {
	if e.Response != nil && e.Error != nil {
		return errors.New("it has both a response and an error")
	}
	p, prev, err := w.advance(e.Episode, w.totals.seq)
	if err != nil {
		return err
	}
	p.Replied(e)
	w.totals.calls++
	w.totals.spent = int64(llm.Money(w.totals.spent).Plus(e.Cost()))
	return w.store(e.Episode, step{e, w.totals.seq, prev, &p.said})
}

func (w *writer) insertReply(s *step, e *journal.Replied) error {
	v, err := w.newReplyRow(e, s.said)
	if err != nil {
		return err
	}
	r, err := w.rows.Row(putRepliedSQL, rowReplies, s.seq, 2)
	if err != nil {
		return err
	}
	r.Int(s.prev)
	v.putCore(&r)
	v.putAnswer(&r)
	v.putAccount(&r)
	v.putRequest(&r)
	return r.Do()
}

// newReplyRow stores the texts of e. The row is valid until the next one.
func (w *writer) newReplyRow(e *journal.Replied, said *contentSaid) (v *replyRow, err error) {
	v = &w.reply
	*v = replyRow{Replied: e, flags: flag(e.Copied, flagCopied) | flag(e.Request != nil, flagAsked) | flag(e.Act != nil, flagAct)}
	if e.Request != nil {
		if err := w.storeRequest(v, said); err != nil {
			return nil, err
		}
	}
	if a := e.Response; a != nil {
		v.flags |= flagAnswered
		v.response = *a
		if a.Text != "" {
			if v.answer, err = w.saidID(said, a.Text); err != nil {
				return nil, err
			}
		}
		if v.rest, err = encodeAnswer(a); err != nil {
			return nil, err
		}
	}
	if f := e.Error; f != nil {
		v.flags |= flagFailed | flag(f.Final, flagFinal) | flag(f.Uncertain, flagUncertain)
		v.response = llm.Response{Model: f.Model, Provider: f.Provider, RequestID: f.RequestID, Usage: f.Usage, Metadata: f.Metadata}
		if f.Kind == llm.KindRaised { // the world is given the message: see readReply
			v.response.JSON = quoted(f.Message)
		}
	}
	t := &v.response.Metadata
	v.flags |= flag(t.Cached, flagCached) | flag(t.Coalesced, flagCoalesced) | flag(t.Hedged, flagHedged) | flag(t.Estimated, flagEstimated)
	return v, nil
}

func (w *writer) storeRequest(v *replyRow, said *contentSaid) (err error) {
	if v.settings, err = w.settingsID(v.Request); err != nil {
		return err
	}
	w.ids, w.roles = w.ids[:0], w.roles[:0]
	for i := range v.Request.Messages {
		m := &v.Request.Messages[i]
		id, err := w.messageID(said, m)
		if err != nil {
			return err
		}
		w.ids = append(w.ids, id)
		w.roles = append(w.roles, contentLetter(m.Role))
	}
	w.list = appendIDs(w.list[:0], w.ids)
	v.prompt, v.roles = string(w.list), string(w.roles)
	return nil
}

// putCore writes coreColumns after prev.
func (v *replyRow) putCore(r *rowWriter) {
	r.Int(v.flags)
	putTurn(r, v.Turn)
	r.Int(int64(v.Index))
	r.Int(int64(v.response.Metadata.Cost))
	r.Int(int64(v.response.Usage.Input))
	r.Int(int64(v.response.Usage.Output))
	r.Optional(string(v.response.Finish))
	if v.Error != nil {
		r.Text(string(v.Error.Kind))
	} else {
		r.Null()
	}
	r.ID(v.answer)
	r.Seal()
}

// putAnswer writes answerColumns.
func (v *replyRow) putAnswer(r *rowWriter) {
	if a := &v.response; a.Text != "" && string(a.JSON) == a.Text {
		r.Int(1)
	} else {
		r.JSON(a.JSON)
	}
	r.Optional(v.rest)
	r.Seal()
}

// putAccount writes accountColumns.
func (v *replyRow) putAccount(r *rowWriter) {
	r.Text(v.Seat)
	r.Text(v.Label)
	r.Text(v.Agent)
	r.Time(v.At)
	r.ID(v.settings)
	r.Optional(v.response.Model)
	r.Optional(v.response.Provider)
	r.Optional(v.response.Tier)
	u, t := &v.response.Usage, &v.response.Metadata
	for _, n := range [...]int{u.Cached, u.CacheWrite, u.CacheWriteLong, u.Reasoning, t.Attempts} {
		r.Int(int64(n))
	}
	r.Optional(t.Parsed)
	r.Int(int64(t.FirstByte))
	r.Int(int64(t.Latency))
	r.Int(int64(t.Waited))
	if f := v.Error; f != nil {
		r.Text(f.Message)
		r.Int(int64(f.Status))
		r.Optional(f.Code)
		r.Int(int64(f.RetryAfter))
	} else {
		r.Nulls(4)
	}
	r.Seal()
}

// putRequest writes requestColumns.
func (v *replyRow) putRequest(r *rowWriter) {
	if q := v.Request; q != nil {
		r.Text(v.prompt)
		r.Text(v.roles)
		r.Int(int64(q.Sample))
		r.Int(int64(q.Prefix))
		r.Optional(q.Session)
		r.Int(q.Order)
	} else {
		r.Nulls(6)
	}
	if a := v.Act; a != nil {
		r.Text(a.Name)
		r.JSON(a.Body)
	} else {
		r.Nulls(2)
	}
	r.Optional(v.response.ID)
	r.Optional(v.response.RequestID)
	r.Seal()
}

// answerRest holds the fields of an answer that have no column. Most answers have none of them.
type answerRest struct {
	Refusal        string         `json:"refusal,omitempty"`
	Thoughts       []llm.Thought  `json:"thoughts,omitempty"`
	ToolCalls      []llm.ToolCall `json:"tool_calls,omitempty"`
	Logprobs       []llm.Logprob  `json:"logprobs,omitempty"`
	TokenIDs       []int          `json:"token_ids,omitempty"`
	PromptTokenIDs []int          `json:"prompt_token_ids,omitempty"`
	WeightVersion  string         `json:"weight_version,omitempty"`
	Dropped        []string       `json:"dropped,omitempty"`
	Spans          []llm.Span     `json:"spans,omitempty"`
	AudioTokens    int            `json:"audio_tokens,omitempty"` // of the usage
}

func encodeAnswer(a *llm.Response) (string, error) {
	if a.Refusal == "" && a.WeightVersion == "" && a.Usage.Audio == 0 && len(a.Thoughts)+len(a.ToolCalls)+len(a.Logprobs)+len(a.TokenIDs)+len(a.PromptTokenIDs)+len(a.Dropped)+len(a.Spans) == 0 {
		return "", nil
	}
	return encode(answerRest{a.Refusal, a.Thoughts, a.ToolCalls, a.Logprobs, a.TokenIDs, a.PromptTokenIDs, a.WeightVersion, a.Dropped, a.Spans, a.Usage.Audio})
}
