package runfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"parley/journal"
	"parley/llm"
	"parley/world"
)

// unfilled is a Replied without its texts. The texts of many are read together.
type unfilled struct {
	*journal.Replied
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

// readCore reads coreColumns, after the key and the checksums.
func readCore(c *rowReader, sums int) (k replyCore, err error) {
	c.Begin(rowReplies, sums)
	k = replyCore{seq: c.Key, prev: c.Int64(), flags: c.Int64(), turn: readTurn(c), index: c.Int()}
	k.cost, k.input, k.output = llm.Money(c.Int64()), c.Int(), c.Int()
	k.finish, k.failed, k.answer = llm.Finish(c.Usual(string(llm.FinishStop))), llm.Kind(c.Optional()), c.Int64()
	return k, c.Check()
}

func readTurn(c *rowReader) journal.Turn {
	return journal.Turn{Episode: c.Int(), Attempt: c.Int(), Strand: c.Optional(), Turn: c.Int()}
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
		Cached: k.has(flagCached), Coalesced: k.has(flagCoalesced), Hedged: k.has(flagHedged), Estimated: k.has(flagEstimated),
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

// fillAll reads the texts of replies.
func (r *reader) fillAll(all []unfilled) error {
	var ids []int64
	for i := range all {
		ids = append(append(ids, all[i].settings, all[i].answer), all[i].prompt...)
	}
	if err := r.fetch(ids); err != nil {
		return err
	}
	for i := range all {
		if err := r.fill(&all[i]); err != nil {
			return fmt.Errorf("%s: %w", callName(all[i].Turn, all[i].Index), err)
		}
	}
	return nil
}

func (r *reader) fill(p *unfilled) error {
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
		if q.Messages[i], err = r.message(id, p.roles[i]); err != nil {
			return err
		}
	}
	*p.Request = q
	return nil
}
