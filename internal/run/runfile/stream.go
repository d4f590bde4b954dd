package runfile

import (
	"cmp"
	"context"
	"fmt"
	"sync"

	"parley/journal"
	"parley/llm"
	"parley/world"
)

// briefAtOnce is how many entries Brief reads from one state of the file.
const briefAtOnce = 1 << 16

const briefSQL = `SELECT seq, sum, sum2, ` + coreColumns + `, ` + accountColumns + ` FROM replies `

// Brief reads, in order, the entries that account for a run: rare entries and replies, without
// texts. A request has only its model. A reply is valid until each returns: the next one is
// read into the same memory.
func (s *Store) Brief(ctx context.Context, each func(journal.Entry) error) error {
	b := newBriefReader(each)
	err := s.chunks(ctx, 0, briefAtOnce, func(r *reader, in span, t totals) (int64, error) {
		err := b.read(r, in)
		if err == nil && in.to == t.seq {
			err = cmp.Or(r.complete(b.replies, t.calls, "replies"), r.complete(b.seen, t.events, "events"))
		}
		return in.to, err
	}, func() error { return nil })
	return cmp.Or(b.stopped, err)
}

// BriefPart is Brief for at most limit entries after the given number of entries. It returns the
// number of the last entry that it read, which is after if there are no more.
func (s *Store) BriefPart(ctx context.Context, after, limit int, each func(journal.Entry) error) (last int, err error) {
	if err := context.Cause(ctx); err != nil {
		return after, err
	}
	b := newBriefReader(each)
	last = after
	err = s.read(func(r *reader) error {
		t, err := readTotals(r.conn)
		if err != nil || int64(after) >= t.seq {
			return err
		}
		in := span{int64(after), min(int64(after)+int64(limit), t.seq)}
		last = int(in.to)
		return b.read(r, in)
	})
	return last, cmp.Or(b.stopped, err)
}

// Entries returns the number of entries. It is fast enough to be called several times a second.
func (s *Store) Entries() (n int, err error) {
	err = s.read(func(r *reader) error {
		t, err := readTotals(r.conn)
		n = int(t.seq)
		return err
	})
	return n, err
}

// Failed reads, in order, the replies that failed or were refused, as Brief does.
func (s *Store) Failed(ctx context.Context, each func(journal.Entry) error) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	b := newBriefReader(each)
	failed := fmt.Sprintf(`WHERE seq > ? AND seq <= ? AND (flags & %d OR finish = '%s') ORDER BY seq`, flagFailed, llm.FinishRefused)
	err := s.read(func(r *reader) error {
		return r.scan(briefSQL+failed, everything(), func(c rowReader) error {
			if err := b.readReply(r, c); err != nil || r.lost.Has(b.replied.Episode) {
				return err
			}
			return b.pass(&b.replied)
		})
	})
	return cmp.Or(b.stopped, err)
}

// briefReader is a Brief in progress.
type briefReader struct {
	models  map[int64]string // by id of settings
	each    func(journal.Entry) error
	stopped error // what each returned

	events        []journal.Entry // of the span that each did not get yet
	seqs          []int64         // their numbers
	seen, replies int64           // how many events and replies were read
	// Of the current reply.
	replied journal.Replied
	request llm.Request
	answer  llm.Response
	act     world.Act // stays empty
}

func newBriefReader(each func(journal.Entry) error) *briefReader {
	return &briefReader{models: map[int64]string{}, each: each}
}

func (b *briefReader) read(r *reader, in span) error {
	n, err := r.events(in, func(seq int64, e journal.Entry) {
		b.events, b.seqs = append(b.events, e), append(b.seqs, seq)
	})
	b.seen += n
	if err != nil {
		return err
	}
	err = r.scan(briefSQL+inSpan, in, func(c rowReader) error {
		if err := b.readReply(r, c); err != nil || r.lost.Has(b.replied.Episode) {
			return err
		}
		b.replies++
		if err := b.passEvents(c.Key); err != nil {
			return err
		}
		return b.pass(&b.replied)
	})
	if err != nil {
		return err
	}
	return b.passEvents(in.to + 1)
}

// passEvents passes the events before an entry to each.
func (b *briefReader) passEvents(before int64) error {
	for len(b.seqs) > 0 && b.seqs[0] < before {
		e := b.events[0]
		b.events, b.seqs = b.events[1:], b.seqs[1:]
		if err := b.pass(e); err != nil {
			return err
		}
	}
	return nil
}

func (b *briefReader) pass(e journal.Entry) error {
	b.stopped = b.each(e)
	return b.stopped
}

// readReply reads a row of briefSQL.
func (b *briefReader) readReply(r *reader, c rowReader) error {
	k, err := readCore(&c, 2)
	if err != nil {
		return err
	}
	e := &b.replied
	*e = journal.Replied{Turn: journal.Turn{Episode: k.turn.Episode, Attempt: k.turn.Attempt}, Copied: k.has(flagCopied)}
	b.answer = llm.Response{}
	c.SkipGroup() // answerColumns
	settings, err := readAccount(&c, &k, e, &b.answer)
	if err != nil {
		return withEpisode(e.Episode, err)
	}
	if k.has(flagAsked) {
		model, err := b.model(r, settings)
		if err != nil {
			return fmt.Errorf("episode %d: settings: %w", e.Episode, err)
		}
		b.request = llm.Request{Model: model}
		e.Request = &b.request
	}
	if k.has(flagAct) {
		e.Act = &b.act
	}
	return nil
}

// maxModels is how many settings are remembered: a run has few, but a kind may make one for
// every call.
const maxModels = 1 << 14

func (b *briefReader) model(r *reader, settings int64) (string, error) {
	if m, ok := b.models[settings]; ok {
		return m, nil
	}
	q, err := r.settings(settings)
	if err != nil {
		return "", err
	}
	if len(b.models) >= maxModels {
		clear(b.models)
	}
	b.models[settings] = q.Model
	return q.Model, nil
}

// Recorded is a reply as the file has it.
type Recorded struct {
	Call     int64  // its number in the journal, as in the views
	Settings string // the request without its messages and its sample, as JSON, or empty
	*journal.Replied
}

// Replies reads, in order, every reply that exists when it begins, after the given call: 0
// for all. Without prompts, requests have no messages, and their texts are not read. It holds
// no state of the file while each runs, and reads ahead meanwhile.
func (s *Store) Replies(ctx context.Context, after int64, prompts bool, each func(Recorded) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	batches := make(chan []Recorded)
	var readErr error
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(batches)
		readErr = s.readAhead(ctx, after, prompts, batches)
	})
	err := passAll(batches, each)
	cancel(context.Canceled)
	wg.Wait()
	if err != nil {
		return err
	}
	return readErr
}

func passAll(batches <-chan []Recorded, each func(Recorded) error) error {
	for batch := range batches {
		for _, e := range batch {
			if err := each(e); err != nil {
				return err
			}
		}
	}
	return nil
}

// readAhead reads a batch of replies while the one before is used.
func (s *Store) readAhead(ctx context.Context, after int64, prompts bool, to chan<- []Recorded) error {
	var batch []Recorded
	n := int64(0)
	read := func(r *reader, in span, t totals) (to int64, err error) {
		batch, to, err = r.recorded(prompts, in)
		if n += int64(len(batch)); err == nil && after == 0 && to == t.seq {
			err = r.complete(n, t.calls, "replies")
		}
		return to, err
	}
	return s.chunks(ctx, after, readAtOnce, read, func() error {
		select {
		case to <- batch:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
}

func (r *reader) recorded(prompts bool, in span) (out []Recorded, to int64, err error) {
	all, to, err := r.replies(in, prompts)
	for i := 0; err == nil && i < len(all); i++ {
		var settings *storedText
		if settings, err = r.text(all[i].settings); err == nil {
			out = append(out, Recorded{Call: all[i].seq, Settings: settings.words, Replied: all[i].Replied})
		}
	}
	return out, to, err
}

// Count implements journal.Counter. It reads no texts, so it takes as long as Failed.
func (s *Store) Count(ctx context.Context) (all journal.Spending, err error) {
	if err := context.Cause(ctx); err != nil {
		return all, err
	}
	counted := false
	err = s.read(func(r *reader) error {
		if r.lost != nil {
			return nil
		}
		stmt, err := r.conn.Prepare(fmt.Sprintf(`SELECT flags & %d, count(*), sum(max(cost, 0)), sum(input), sum(output) FROM replies GROUP BY 1`, countedFlags))
		if err != nil {
			return err
		}
		defer reset(stmt)
		for {
			if more, err := stmt.Step(); err != nil || !more {
				counted = err == nil
				return err
			}
			k := replyCore{flags: stmt.ColumnInt64(0), cost: llm.Money(stmt.ColumnInt64(2)), input: stmt.ColumnInt(3), output: stmt.ColumnInt(4)}
			all.AddAlike(k.counted(), stmt.ColumnInt(1))
		}
	})
	if counted {
		return all, err
	}
	all = journal.Spending{}
	err = s.Brief(ctx, func(e journal.Entry) error { // which leaves out what is damaged, and counts more tokens than SQLite can
		if r, ok := e.(*journal.Replied); ok {
			all.Add(r)
		}
		return nil
	})
	return all, err
}
