package sqlite

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"zombiezen.com/go/sqlite"

	"parley/journal"
	"parley/llm"
	"parley/world"
)

// partial is a Replied whose texts are still to be read: those of many are read together.
type partial struct {
	*journal.Replied
	settings, answer int64 // texts; 0: none
	prompt           []int64
	roles            string
	same             bool // its JSON is its text
}

// core is what every reader of a reply needs.
type core struct {
	seq, prev, flags int64
	turn             journal.Turn
	place            int
	cost             llm.Money
	input, output    int
	finish           llm.Finish
	failed           llm.Kind
	answer           int64
}

// core reads coreColumns, after the number and the checksums.
func (c *columns) core(sums int) (k core, err error) {
	k = core{seq: c.key(tableReplies, sums), prev: c.int64(), flags: c.int64(), turn: c.turn(), place: c.int()}
	k.cost, k.input, k.output = llm.Money(c.int64()), c.int(), c.int()
	k.finish, k.failed, k.answer = llm.Finish(c.str()), llm.Kind(c.opt()), c.int64()
	return k, c.check()
}

// account reads accountColumns into e, and the answer or the failure into a and the error
// that it returns. settings is a text.
func (c *columns) account(k *core, e *journal.Replied, a *llm.Response) (settings int64, err error) {
	e.Seat, e.Label, e.Agent, e.At = c.str(), c.str(), c.str(), c.time()
	settings = c.int64()
	a.Finish, a.Model, a.Provider, a.Tier = k.finish, c.str(), c.str(), c.opt()
	a.Usage = llm.Usage{Input: k.input, Cached: c.int(), CacheWrite: c.int(), CacheWriteLong: c.int(), Output: k.output, Reasoning: c.int()}
	a.Metadata = llm.Metadata{
		Attempts: c.int(), Parsed: c.opt(), Cost: k.cost,
		FirstByte: time.Duration(c.int64()), Latency: time.Duration(c.int64()), Waited: time.Duration(c.int64()),
		Cached: k.flags&flagCached != 0, Coalesced: k.flags&flagCoalesced != 0, Hedged: k.flags&flagHedged != 0, Estimated: k.flags&flagEstimated != 0,
	}
	switch {
	case k.flags&flagFailed != 0:
		e.Error = &llm.Error{
			Kind: k.failed, Message: c.str(), Status: c.int(), Code: c.str(), RetryAfter: time.Duration(c.int64()),
			Provider: a.Provider, Model: a.Model, Usage: a.Usage, Metadata: a.Metadata,
			Final: k.flags&flagFinal != 0, Uncertain: k.flags&flagUncertain != 0,
		}
	default:
		c.nulls(4)
		if k.flags&flagAnswered != 0 {
			e.Response = a
		}
	}
	return settings, c.check()
}

// replied reads a row of repliedColumns. Without prompts the request has no messages.
func replied(c columns, prompts bool) (p partial, prev int64, err error) {
	k, err := c.core(2)
	if err != nil {
		return p, 0, err
	}
	p.Replied = &journal.Replied{Turn: k.turn, Index: k.place, Copied: k.flags&flagCopied != 0}
	p.answer = k.answer
	a := &llm.Response{}
	if p.same, err = c.answered(a); err != nil {
		return p, 0, of(p.Episode, err)
	}
	if p.settings, err = c.account(&k, p.Replied, a); err != nil {
		return p, 0, of(p.Episode, err)
	}
	if err := p.asked(&c, k.flags, a, prompts); err != nil {
		return p, 0, of(p.Episode, err)
	}
	return p, k.prev, nil
}

func (c *columns) turn() journal.Turn {
	return journal.Turn{Episode: c.int(), Attempt: c.int(), Strand: c.opt(), Turn: c.int()}
}

// asked reads requestColumns.
func (p *partial) asked(c *columns, flags int64, a *llm.Response, prompts bool) (err error) {
	key := c.sum.key
	var prompt string
	if flags&flagAsked == 0 {
		c.nulls(6)
	} else {
		prompt, p.roles = c.str(), c.str()
		p.Request = &llm.Request{Sample: c.int(), Prefix: c.int(), Session: c.opt(), Order: c.int64()}
	}
	if flags&flagAct == 0 {
		c.nulls(2)
	} else {
		p.Act = &world.Act{Name: c.str(), Body: c.raw()}
	}
	a.ID, a.RequestID = c.opt(), c.opt()
	if p.Error != nil {
		p.Error.RequestID = a.RequestID
	}
	if err := c.check(); err != nil || p.Request == nil || !prompts {
		return err
	}
	if p.prompt, err = ids(prompt); err == nil && len(p.roles) != len(p.prompt) {
		err = errors.New("its prompt has a message without a role")
	}
	if err != nil {
		return &rowError{table: tableReplies, key: key, why: err.Error()}
	}
	return nil
}

// answered reads answerColumns, and says whether the JSON is the text, which is not read yet.
func (c *columns) answered(a *llm.Response) (same bool, err error) {
	key := c.sum.key
	same = c.s.ColumnType(c.i) == sqlite.TypeInteger // asked before it is read as a text
	if same {
		same = c.int64() == 1 // to a checksum, 0 is like nothing: a bit makes one of the other
	} else {
		a.JSON = c.raw()
	}
	rest := c.opt()
	if err := c.check(); err != nil || rest == "" {
		return same, err
	}
	var v answerRest
	if err := json.Unmarshal([]byte(rest), &v); err != nil {
		return same, &rowError{table: tableReplies, key: key, why: err.Error()}
	}
	a.Refusal, a.Thoughts, a.ToolCalls, a.Logprobs = v.Refusal, v.Thoughts, v.ToolCalls, v.Logprobs
	a.TokenIDs, a.PromptTokenIDs, a.WeightVersion, a.Dropped = v.TokenIDs, v.PromptTokenIDs, v.WeightVersion, v.Dropped
	return same, nil
}

// call says where a call was made, for people.
func call(t journal.Turn, index int) string {
	strand := ""
	if t.Strand != "" {
		strand = t.Strand + "/"
	}
	return fmt.Sprintf("episode %d, turn %s%d, call %d", t.Episode, strand, t.Turn, index)
}

// fillAll reads the texts of replies.
func (r *reader) fillAll(all []partial) error {
	var wanted []int64
	for i := range all {
		wanted = append(append(wanted, all[i].settings, all[i].answer), all[i].prompt...)
	}
	if err := r.fetch(wanted); err != nil {
		return err
	}
	for i := range all {
		if err := r.fill(&all[i]); err != nil {
			return fmt.Errorf("%s: %w", call(all[i].Turn, all[i].Index), err)
		}
	}
	return nil
}

func (r *reader) fill(p *partial) error {
	if p.answer != 0 && p.Response != nil {
		t, err := r.text(p.answer)
		if err != nil {
			return err
		}
		p.Response.Text = t.words
		if p.same {
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
	*p.Request = q
	for i, id := range p.prompt {
		if p.Request.Messages == nil {
			p.Request.Messages = make([]llm.Message, len(p.prompt))
		}
		if p.Request.Messages[i], err = r.message(id, p.roles[i]); err != nil {
			return err
		}
	}
	return nil
}
