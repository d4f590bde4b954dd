package sqlite

import (
	"context"
	"fmt"

	"parley/journal"
	"parley/llm"
	"parley/world"
)

// briefAtOnce is how many entries Brief reads on one state of the file.
const briefAtOnce = 1 << 16

const briefSQL = `SELECT seq, flags, episode, attempt, seat, label, agent, at, settings,
	finish, model, provider, tier, input, cached, cache_write, cache_write_long, output, reasoning,
	tries, parsed, cost, first_byte, latency, waited, error, message, status, code, retry_after FROM replies `

// Brief reads, in order, what accounts for a run: its sittings, its batches, and its
// replies without anything that was said. Of a request there is the model only. A reply
// is good until each returns, since the next one is read into it.
func (s *Store) Brief(ctx context.Context, each func(journal.Entry) error) error {
	var last int64
	err := s.readers.with(func(r *reader) (err error) { last, err = r.last(); return err })
	b := &brief{models: map[int64]string{}, each: each}
	for after := int64(0); err == nil && after < last; after += briefAtOnce {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		in := span{after, min(after+briefAtOnce, last)}
		err = s.readers.with(func(r *reader) error { return b.read(r, in) })
	}
	if b.stopped != nil {
		return b.stopped
	}
	if err != nil {
		return explain(s.path, "read", err)
	}
	return nil
}

// Failed reads, in order, the replies that failed or were refused, as Brief does.
func (s *Store) Failed(ctx context.Context, each func(journal.Entry) error) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	b := &brief{models: map[int64]string{}, each: each}
	err := s.readers.with(func(r *reader) error {
		return r.rows(briefSQL+failedReplies, []int64{flagFailed}, func(c columns) error {
			c.int64() // its place
			if err := b.row(r, c); err != nil {
				return err
			}
			return b.hand(&b.replied)
		})
	})
	if b.stopped != nil {
		return b.stopped
	}
	if err != nil {
		return explain(s.path, "read", err)
	}
	return nil
}

const failedReplies = `WHERE flags & ? OR finish = '` + string(llm.FinishRefused) + `' ORDER BY seq`

// brief is a Brief under way.
type brief struct {
	models  map[int64]string // by text of settings
	each    func(journal.Entry) error
	stopped error // what each said

	events  []journal.Entry // of the span, that are still to come, and their places
	at      []int64
	replied journal.Replied
	request llm.Request
	answer  llm.Response
	act     world.Act // of which nothing is read
}

func (b *brief) read(r *reader, in span) error {
	err := r.events(in, func(seq int64, e journal.Entry) {
		b.events, b.at = append(b.events, e), append(b.at, seq)
	})
	if err != nil {
		return err
	}
	err = r.rows(briefSQL+inSpan, []int64{in.after, in.to}, func(c columns) error {
		if err := b.until(c.int64()); err != nil {
			return err
		}
		if err := b.row(r, c); err != nil {
			return err
		}
		return b.hand(&b.replied)
	})
	if err != nil {
		return err
	}
	return b.until(in.to + 1)
}

// until hands over the events before an entry.
func (b *brief) until(seq int64) error {
	for len(b.at) > 0 && b.at[0] < seq {
		e := b.events[0]
		b.events, b.at = b.events[1:], b.at[1:]
		if err := b.hand(e); err != nil {
			return err
		}
	}
	return nil
}

func (b *brief) hand(e journal.Entry) error {
	b.stopped = b.each(e)
	return b.stopped
}

// row reads a row of briefSQL, from its second column on.
func (b *brief) row(r *reader, c columns) error {
	flags := c.int64()
	e := &b.replied
	*e = journal.Replied{Turn: journal.Turn{Episode: c.int(), Attempt: c.int()}, Seat: c.str(), Label: c.str(), Agent: c.str(), At: c.time(), Copied: flags&flagCopied != 0}
	settings := c.int64()
	if flags&flagAsked != 0 {
		model, err := b.model(r, settings)
		if err != nil {
			return err
		}
		b.request = llm.Request{Model: model}
		e.Request = &b.request
	}
	if flags&flagAct != 0 {
		e.Act = &b.act
	}
	a := &b.answer
	*a = llm.Response{Finish: llm.Finish(c.str()), Model: c.str(), Provider: c.str(), Tier: c.str()}
	c.spent(a, flags)
	switch {
	case flags&flagFailed != 0:
		e.Error = c.failed(a, flags)
	case flags&flagAnswered != 0:
		e.Response = a
	}
	return nil
}

// modelsKept is how many settings are remembered: there are few, but a kind may make one
// for every call.
const modelsKept = 1 << 14

func (b *brief) model(r *reader, settings int64) (string, error) {
	if m, ok := b.models[settings]; ok {
		return m, nil
	}
	q, err := r.settings(settings)
	if err != nil {
		return "", fmt.Errorf("settings: %w", err)
	}
	if len(b.models) >= modelsKept {
		clear(b.models)
	}
	b.models[settings] = q.Model
	return q.Model, nil
}
