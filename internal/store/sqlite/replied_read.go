package sqlite

import (
	"encoding/json"
	"fmt"
	"time"

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

// replied reads a row of repliedColumns.
func replied(c columns) (p partial, prev int64, err error) {
	p.Replied = &journal.Replied{}
	c.skip(1)
	prev = c.int64()
	flags := c.int64()
	p.Turn = c.turn()
	p.Index, p.Seat, p.Label, p.Agent, p.At = c.int(), c.str(), c.str(), c.str(), c.time()
	p.Copied = flags&flagCopied != 0
	if flags&flagAsked == 0 {
		c.skip(7)
	} else if err := p.asked(&c); err != nil {
		return p, 0, err
	}
	if flags&flagAct == 0 {
		c.skip(2)
	} else {
		p.Act = &world.Act{Name: c.str(), Body: c.raw()}
	}
	a := &llm.Response{}
	if err := p.answered(&c, a); err != nil {
		return p, 0, err
	}
	c.spent(a, flags)
	switch {
	case flags&flagFailed != 0:
		p.Error = c.failed(a, flags)
	case flags&flagAnswered != 0:
		p.Response = a
	}
	return p, prev, nil
}

func (c *columns) turn() journal.Turn {
	return journal.Turn{Episode: c.int(), Attempt: c.int(), Strand: c.str(), Turn: c.int()}
}

func (p *partial) asked(c *columns) (err error) {
	p.settings = c.int64()
	if p.prompt, err = ids(c.str()); err != nil {
		return err
	}
	p.roles = c.str()
	if len(p.roles) != len(p.prompt) {
		return missing(false, "a role in a prompt")
	}
	p.Request = &llm.Request{Sample: c.int(), Prefix: c.int(), Session: c.str(), Order: c.int64()}
	return nil
}

func (p *partial) answered(c *columns, a *llm.Response) error {
	p.answer = c.int64()
	p.same = c.isInt() // asked before it is read as a text
	a.JSON = c.raw()
	if err := readRest(a, c.str()); err != nil {
		return err
	}
	a.Finish, a.Model, a.Provider, a.ID, a.RequestID, a.Tier = llm.Finish(c.str()), c.str(), c.str(), c.str(), c.str(), c.str()
	return nil
}

// readRest reads what few answers have.
func readRest(a *llm.Response, text string) error {
	if text == "" {
		return nil
	}
	var v answerRest
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		return fmt.Errorf("%w: an answer: %w", ErrDamaged, err)
	}
	a.Refusal, a.Thoughts, a.ToolCalls, a.Logprobs = v.Refusal, v.Thoughts, v.ToolCalls, v.Logprobs
	a.TokenIDs, a.PromptTokenIDs, a.WeightVersion, a.Dropped = v.TokenIDs, v.PromptTokenIDs, v.WeightVersion, v.Dropped
	return nil
}

func (c *columns) spent(a *llm.Response, flags int64) {
	a.Usage = llm.Usage{Input: c.int(), Cached: c.int(), CacheWrite: c.int(), CacheWriteLong: c.int(), Output: c.int(), Reasoning: c.int()}
	a.Trail = llm.Trail{
		Attempts: c.int(), Parsed: c.str(), Cost: llm.Money(c.int64()),
		FirstByte: time.Duration(c.int64()), Latency: time.Duration(c.int64()), Waited: time.Duration(c.int64()),
		Cached: flags&flagCached != 0, Coalesced: flags&flagCoalesced != 0, Hedged: flags&flagHedged != 0, Estimated: flags&flagEstimated != 0,
	}
}

func (c *columns) failed(a *llm.Response, flags int64) *llm.Error {
	return &llm.Error{
		Kind: llm.Kind(c.str()), Message: c.str(), Status: c.int(), Code: c.str(), RetryAfter: time.Duration(c.int64()),
		Provider: a.Provider, Model: a.Model, RequestID: a.RequestID, Usage: a.Usage, Trail: a.Trail,
		Final: flags&flagFinal != 0, Uncertain: flags&flagUncertain != 0,
	}
}

// complete reads the texts of replies.
func (r *reader) complete(all []partial) error {
	var wanted []int64
	for i := range all {
		wanted = append(append(wanted, all[i].settings, all[i].answer), all[i].prompt...)
	}
	if err := r.fetch(wanted); err != nil {
		return err
	}
	for i := range all {
		if err := r.fill(&all[i]); err != nil {
			return err
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
