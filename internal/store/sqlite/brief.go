package sqlite

import (
	"cmp"
	"context"
	"fmt"

	"parley/journal"
	"parley/llm"
	"parley/world"
)

// briefAtOnce is how many entries Brief reads on one state of the file.
const briefAtOnce = 1 << 16

const briefSQL = `SELECT seq, sum, sum2, ` + coreColumns + `, ` + accountColumns + ` FROM replies `

// Brief reads, in order, what accounts for a run: its sittings, its batches, and its
// replies without anything that was said. Of a request there is the model only. A reply
// is good until each returns, since the next one is read into it.
func (s *Store) Brief(ctx context.Context, each func(journal.Entry) error) error {
	t, err := s.totals()
	b := &brief{models: map[int64]string{}, each: each}
	for after := int64(0); err == nil && after < t.seq; after += briefAtOnce {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		in := span{after, min(after+briefAtOnce, t.seq)}
		err = s.readers.with(func(r *reader) error {
			err := b.read(r, in)
			if err == nil && in.to == t.seq {
				err = cmp.Or(r.complete(b.replies, t.calls, "replies"), r.complete(b.seen, t.events, "events"))
			}
			return err
		})
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
		return r.scan(briefSQL+failedReplies(), everything(), func(c columns) error {
			if _, err := b.row(r, c); err != nil || r.lost.has(b.replied.Episode) {
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

func failedReplies() string {
	return fmt.Sprintf(`WHERE seq > ? AND seq <= ? AND (flags & %d OR finish = '%s') ORDER BY seq`, flagFailed, llm.FinishRefused)
}

// brief is a Brief under way.
type brief struct {
	models  map[int64]string // by text of settings
	each    func(journal.Entry) error
	stopped error // what each said

	events        []journal.Entry // of the span, that are still to come, and their places
	at            []int64
	seen, replies int64 // how many of both there were
	replied       journal.Replied
	request       llm.Request
	answer        llm.Response
	act           world.Act // of which nothing is read
}

func (b *brief) read(r *reader, in span) error {
	n, err := r.events(in, func(seq int64, e journal.Entry) {
		b.events, b.at = append(b.events, e), append(b.at, seq)
	})
	b.seen += n
	if err != nil {
		return err
	}
	err = r.scan(briefSQL+inSpan, in, func(c columns) error {
		seq, err := b.row(r, c)
		if err != nil || r.lost.has(b.replied.Episode) {
			return err
		}
		b.replies++
		if err := b.until(seq); err != nil {
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

// row reads a row of briefSQL.
func (b *brief) row(r *reader, c columns) (seq int64, err error) {
	k, err := c.core(2)
	if err != nil {
		return 0, err
	}
	e := &b.replied
	*e = journal.Replied{Turn: journal.Turn{Episode: k.turn.Episode, Attempt: k.turn.Attempt}, Copied: k.flags&flagCopied != 0}
	b.answer = llm.Response{}
	c.sum.skip(1) // what the answer is, which is not read
	settings, err := c.account(&k, e, &b.answer)
	if err != nil {
		return 0, of(e.Episode, err)
	}
	if k.flags&flagAsked != 0 {
		model, err := b.model(r, settings)
		if err != nil {
			return 0, fmt.Errorf("episode %d: %w", e.Episode, err)
		}
		b.request = llm.Request{Model: model}
		e.Request = &b.request
	}
	if k.flags&flagAct != 0 {
		e.Act = &b.act
	}
	return k.seq, nil
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
