package runfile

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"parley/internal/kit/files"
	"parley/journal"
	"parley/llm"
	"parley/world"
)

// The bits of replies.flags.
const (
	flagAnswered = 1 << iota
	flagFailed
	flagAsked
	flagCopied
	flagCached
	flagCoalesced
	flagProgram
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
	repliesSQL     = `SELECT ` + repliedColumns + ` FROM replies `
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
	v, err := w.newReplyRow(e, &p.texts)
	if err != nil {
		return err
	}
	r, err := w.rows.Row(putRepliedSQL, tableReplies, w.totals.seq, 2)
	if err != nil {
		return err
	}
	r.Int(prev)
	v.putCore(&r)
	v.putAnswer(&r)
	v.putAccount(&r)
	v.putRequest(&r)
	return r.Do()
}

// newReplyRow stores the texts of e. The row is valid until the next one.
func (w *writer) newReplyRow(e *journal.Replied, texts *episodeTexts) (v *replyRow, err error) {
	v = &w.reply
	*v = replyRow{Replied: e, flags: flag(e.Copied, flagCopied) | flag(e.Request != nil, flagAsked) | flag(e.Act != nil, flagAct) | flag(e.Kind() == journal.Program, flagProgram)}
	if e.Request != nil {
		if err := w.storeRequest(v, texts); err != nil {
			return nil, err
		}
	}
	if a := e.Response; a != nil {
		v.flags |= flagAnswered
		v.response = *a
		if a.Text != "" {
			if v.answer, err = w.episodeTextID(texts, a.Text); err != nil {
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
	v.flags |= flag(t.Cached, flagCached) | flag(t.Coalesced, flagCoalesced) | flag(t.Estimated, flagEstimated)
	return v, nil
}

func (w *writer) storeRequest(v *replyRow, texts *episodeTexts) (err error) {
	if v.settings, err = w.settingsID(v.Request); err != nil {
		return err
	}
	w.ids, w.roles = w.ids[:0], w.roles[:0]
	for i := range v.Request.Messages {
		m := &v.Request.Messages[i]
		id, err := w.messageID(texts, m)
		if err != nil {
			return err
		}
		w.ids = append(w.ids, id)
		w.roles = append(w.roles, roleLetter(m.Role))
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

// replies reads the replies of a span, up to about batchMemory of them, and returns the number of the last.
func (r *reader) replies(in span, prompts bool) (all []unfilled, to int64, err error) {
	err = r.scan(repliesSQL+inSpan, in, func(c rowReader) error {
		p, _, err := readReplied(c, prompts)
		if p.seq = c.Key; err == nil && !r.lost.Has(p.Episode) {
			all = append(all, p)
		}
		return err
	})
	if err != nil {
		return nil, 0, err
	}
	n, err := r.fillSome(all, batchMemory, math.MaxInt64)
	if n < len(all) {
		return all[:n], all[n].seq - 1, err
	}
	return all, in.to, err
}

// unfilled is a Replied without its texts. The texts of many are read together.
type unfilled struct {
	*journal.Replied
	seq              int64 // of some
	settings, answer int64 // ids of texts, or 0
	prompt           []int64
	roles            string
	jsonIsText       bool // its JSON equals its text
}

// replyCore holds the columns that every reader of a reply needs.
type replyCore struct {
	seq, prev, flags int64
	turn             journal.Turn
	index            int
	cost             llm.Money
	input, output    int
	finish           llm.Finish
	failed           llm.Kind
	answer           int64
}

func (k *replyCore) has(flag int64) bool { return k.flags&flag != 0 }

// countedFlags decide how a reply is counted.
const countedFlags = flagFailed | flagAsked | flagCopied | flagCached | flagCoalesced | flagAct | flagProgram

// counted returns a reply that journal.Spending counts as this one.
func (k *replyCore) counted() *journal.Replied {
	usage := llm.Usage{Input: k.input, Output: k.output}
	meta := llm.Metadata{Cost: k.cost, Cached: k.has(flagCached), Coalesced: k.has(flagCoalesced)}
	e := &journal.Replied{Copied: k.has(flagCopied)}
	switch {
	case k.has(flagAct):
		e.Act = &world.Act{}
	case k.has(flagProgram):
		e.Request = &llm.Request{Model: world.ProgramProvider + "/"}
	case k.has(flagAsked):
		e.Request = &llm.Request{}
	}
	if k.has(flagFailed) {
		e.Error = &llm.Error{Usage: usage, Metadata: meta}
	} else {
		e.Response = &llm.Response{Usage: usage, Metadata: meta}
	}
	return e
}

// readCore reads coreColumns, after the key and the checksums.
func readCore(c *rowReader, sums int) (k replyCore, err error) {
	c.Begin(tableReplies, sums)
	k = replyCore{seq: c.Key, prev: c.Int64(), flags: c.Int64(), turn: readTurn(c), index: c.Int()}
	k.cost, k.input, k.output = llm.Money(c.Int64()), c.Int(), c.Int()
	k.finish, k.failed, k.answer = llm.Finish(c.Usual(string(llm.FinishStop))), llm.Kind(c.Optional()), c.Int64()
	return k, c.Check()
}

// readAccount reads accountColumns into e and a, and returns the id of the settings. It sets
// e.Response to a, or e.Error.
func readAccount(c *rowReader, k *replyCore, e *journal.Replied, a *llm.Response) (settings int64, err error) {
	e.Seat, e.Label, e.Agent, e.At = c.Text(), c.Text(), c.Text(), c.Time()
	settings = c.Int64()
	a.Finish, a.Model, a.Provider, a.Tier = k.finish, c.Text(), c.Text(), c.Optional()
	a.Usage = llm.Usage{Input: k.input, Audio: a.Usage.Audio, Cached: c.Int(), CacheWrite: c.Int(), CacheWriteLong: c.Int(), Output: k.output, Reasoning: c.Int()}
	a.Metadata = llm.Metadata{
		Attempts: c.Int(), Parsed: c.Optional(), Cost: k.cost,
		FirstByte: time.Duration(c.Int64()), Latency: time.Duration(c.Int64()), Waited: time.Duration(c.Int64()),
		Cached: k.has(flagCached), Coalesced: k.has(flagCoalesced), Estimated: k.has(flagEstimated),
	}
	if k.has(flagFailed) {
		e.Error = &llm.Error{
			Kind: k.failed, Message: c.Text(), Status: c.Int(), Code: c.Text(), RetryAfter: time.Duration(c.Int64()),
			Provider: a.Provider, Model: a.Model, Usage: a.Usage, Metadata: a.Metadata,
			Final: k.has(flagFinal), Uncertain: k.has(flagUncertain),
		}
		return settings, c.Check()
	}
	c.Nulls(4)
	if k.has(flagAnswered) {
		e.Response = a
	}
	return settings, c.Check()
}

// readReplied reads a row of repliedColumns, and returns the entry before it in its episode.
// Without prompts the request has no messages.
func readReplied(c rowReader, prompts bool) (p unfilled, prev int64, err error) {
	k, err := readCore(&c, 2)
	if err != nil {
		return p, 0, err
	}
	p.Replied = &journal.Replied{Turn: k.turn, Index: k.index, Copied: k.has(flagCopied)}
	p.answer = k.answer
	a := &llm.Response{}
	if p.jsonIsText, err = readAnswer(&c, a); err == nil {
		p.settings, err = readAccount(&c, &k, p.Replied, a)
	}
	if err == nil {
		err = p.readRequest(&c, &k, a, prompts)
	}
	if err != nil {
		return p, 0, withEpisode(p.Episode, err)
	}
	return p, k.prev, nil
}

// readAnswer reads answerColumns, and reports whether the JSON is the answer's text.
func readAnswer(c *rowReader, a *llm.Response) (jsonIsText bool, err error) {
	if c.IsInt() {
		jsonIsText = c.Int64() == 1 // a checksum does not distinguish 0 from NULL
	} else {
		a.JSON = c.JSON()
	}
	rest := c.Optional()
	if err := c.Check(); err != nil || rest == "" {
		return jsonIsText, err
	}
	v, err := decode[answerRest]([]byte(rest))
	if err != nil {
		return jsonIsText, c.Bad(err.Error())
	}
	a.Refusal, a.Thoughts, a.ToolCalls, a.Logprobs = v.Refusal, v.Thoughts, v.ToolCalls, v.Logprobs
	a.TokenIDs, a.PromptTokenIDs, a.WeightVersion, a.Dropped, a.Spans = v.TokenIDs, v.PromptTokenIDs, v.WeightVersion, v.Dropped, v.Spans
	a.Usage.Audio = v.AudioTokens
	return jsonIsText, nil
}

// readRequest reads requestColumns.
func (p *unfilled) readRequest(c *rowReader, k *replyCore, a *llm.Response, prompts bool) (err error) {
	var prompt string
	if k.has(flagAsked) {
		prompt, p.roles = c.Text(), c.Text()
		p.Request = &llm.Request{Sample: c.Int(), Prefix: c.Int(), Session: c.Optional(), Order: c.Int64()}
	} else {
		c.Nulls(6)
	}
	if k.has(flagAct) {
		p.Act = &world.Act{Name: c.Text(), Body: c.JSON()}
	} else {
		c.Nulls(2)
	}
	a.ID, a.RequestID = c.Optional(), c.Optional()
	if p.Error != nil {
		p.Error.RequestID = a.RequestID
	}
	if err := c.Check(); err != nil || p.Request == nil || !prompts {
		return err
	}
	if p.prompt, err = parseIDs(prompt); err == nil && len(p.roles) != len(p.prompt) {
		err = errors.New("its prompt has a message without a role")
	}
	if err != nil {
		return c.Bad(err.Error())
	}
	return nil
}

// callName names a call for people.
func callName(t journal.Turn, index int) string {
	strand := ""
	if t.Strand != "" {
		strand = t.Strand + "/"
	}
	return fmt.Sprintf("episode %d, turn %s%d, call %d", t.Episode, strand, t.Turn, index)
}

// A text that many calls share is stored once, so a small file can stand for very much. These are limits of what is read at once.
const (
	// maxMemory is how much memory the replies of an episode may take. A file of some megabytes cannot reach it with messages
	// alone: each takes at least two bytes of the file, and a hundred of memory.
	maxMemory = 512 << 20
	// maxWritten is how many bytes the texts of an episode may have when each is written as often as it occurs. The session of a
	// program that repeats its whole conversation in every request has some gigabytes.
	maxWritten    = 16 << 30
	messageMemory = 128 // of a message, without its text
	// batchMemory is how much memory the replies that are read together may take, as far as each does not take more.
	batchMemory = 64 << 20
)

// weight is what replies take that are read together.
type weight struct {
	memory  int64 // about how many bytes, without the texts of messages, which are shared
	written int64 // how many bytes the texts of their messages have, each as often as it occurs
}

// tooLarge returns the error for an episode whose calls are more than limit.
func tooLarge(what string, limit int64) error {
	return fmt.Errorf("%w: its calls %s more than %s", ErrLarge, what, files.Size(limit))
}

// fillAll reads the texts of the replies of one episode.
func (r *reader) fillAll(all []unfilled) error {
	_, err := r.fillSome(all, math.MaxInt64, maxWritten)
	return err
}

// fillSome reads the texts of replies until they take more than so much memory, and returns of how many: of one at least.
func (r *reader) fillSome(all []unfilled, memory, written int64) (n int, err error) {
	var ids []int64
	for i := range all {
		ids = append(append(ids, all[i].settings, all[i].answer), all[i].prompt...)
	}
	if err := r.fetch(ids); err != nil {
		return 0, err
	}
	var w weight
	for i := range all {
		err := r.fill(&all[i], &w)
		if err == nil && w.written > written {
			err = tooLarge("repeat texts that have, written out,", written)
		}
		if err != nil {
			return i, fmt.Errorf("%s: %w", callName(all[i].Turn, all[i].Index), err)
		}
		if w.memory > memory {
			return i + 1, nil
		}
	}
	return len(all), nil
}

// fill reads the texts of a reply, and adds what it takes to w.
func (r *reader) fill(p *unfilled, w *weight) error {
	if p.answer != 0 && p.Response != nil {
		t, err := r.text(p.answer)
		if err != nil {
			return err
		}
		p.Response.Text = t.words
		if p.jsonIsText {
			p.Response.JSON = json.RawMessage(t.words)
		}
	}
	w.memory += 1<<10 + int64(len(p.prompt))*messageMemory
	if p.Response != nil {
		w.memory += int64(len(p.Response.Text) + len(p.Response.JSON)) // most readers make another text of it
	}
	if w.memory > maxMemory {
		return tooLarge("take", maxMemory)
	}
	if p.Request == nil {
		return nil
	}
	base, err := r.settings(p.settings)
	if err != nil {
		return err
	}
	q := *base
	q.Sample, q.Prefix, q.Session, q.Order = p.Request.Sample, p.Request.Prefix, p.Request.Session, p.Request.Order
	if len(p.prompt) > 0 {
		q.Messages = make([]llm.Message, len(p.prompt))
	}
	for i, id := range p.prompt {
		var bytes int64
		if q.Messages[i], bytes, err = r.message(id, p.roles[i]); err != nil {
			return err
		}
		w.written += bytes
	}
	*p.Request = q
	return nil
}

// quoted returns what an act raised as a JSON string, for those who query the file. It keeps every byte, also those that are not UTF-8.
// It is in the column json, since replays read and check that column.
func quoted(text string) []byte {
	b := append(make([]byte, 0, len(text)+2), '"')
	for i := range len(text) {
		if c := text[i]; c < ' ' || c == '"' || c == '\\' {
			b = hex.AppendEncode(append(b, `\u00`...), []byte{c})
		} else {
			b = append(b, c)
		}
	}
	return append(b, '"')
}

// unquoted returns the text of what quoted returned.
func unquoted(b []byte) (string, error) {
	if n := len(b); n < 2 || b[0] != '"' || b[n-1] != '"' {
		return "", errMissing("what an act raised")
	}
	text := make([]byte, 0, len(b))
	for b = b[1 : len(b)-1]; len(b) > 0; b = b[1:] {
		if b[0] != '\\' {
			text = append(text, b[0])
			continue
		}
		if len(b) < 6 {
			return "", errMissing("the end of what an act raised")
		}
		var err error
		if text, err = hex.AppendDecode(text, b[4:6]); err != nil {
			return "", fmt.Errorf("%w: what an act raised: %w", ErrDamaged, err)
		}
		b = b[5:]
	}
	return string(text), nil
}
