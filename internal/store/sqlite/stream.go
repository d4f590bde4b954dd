package sqlite

import (
	"context"
	"sync"

	"parley/journal"
)

// Recorded is a reply as the file has it.
type Recorded struct {
	Call     int64  // its number in the journal, as the views have it
	Settings string // the request without its messages and its sample, as JSON; empty: none
	*journal.Replied
}

// Replies reads every reply there is when it begins, in order, after a call: 0 for all.
// Without prompts, requests have no messages: what was said again at every turn is then not
// read at all. It holds no state of the file while each runs, and reads on meanwhile.
func (s *Store) Replies(ctx context.Context, after int64, prompts bool, each func(Recorded) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	batches := make(chan []Recorded)
	var failed error
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(batches)
		failed = s.ahead(ctx, after, prompts, batches)
	})
	err := handOver(batches, each)
	cancel(context.Canceled)
	wg.Wait()
	switch {
	case err != nil:
		return err
	case failed != nil && failed == context.Cause(ctx):
		return failed
	case failed != nil:
		return explain(s.path, "read", failed)
	}
	return nil
}

func handOver(batches <-chan []Recorded, each func(Recorded) error) error {
	for batch := range batches {
		for _, e := range batch {
			if err := each(e); err != nil {
				return err
			}
		}
	}
	return nil
}

// ahead reads replies, a batch while the one before is used.
func (s *Store) ahead(ctx context.Context, after int64, prompts bool, to chan<- []Recorded) error {
	t, err := s.totals()
	n, whole := int64(0), after == 0
	for ; err == nil && after < t.seq; after += readAtOnce {
		var batch []Recorded
		in := span{after, min(after+readAtOnce, t.seq)}
		err = s.readers.with(func(r *reader) (err error) {
			batch, err = r.recorded(prompts, in)
			if n += int64(len(batch)); err == nil && whole && in.to == t.seq {
				err = r.complete(n, t.calls, "replies")
			}
			return err
		})
		if err != nil {
			return err
		}
		select {
		case to <- batch:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return err
}

func (r *reader) recorded(prompts bool, in span) (out []Recorded, err error) {
	var all []partial
	err = r.scan(repliesSQL+inSpan, in, func(c columns) error {
		p, _, err := replied(c, prompts)
		if err == nil && !r.lost.has(p.Episode) {
			all, out = append(all, p), append(out, Recorded{Call: c.row, Replied: p.Replied})
		}
		return err
	})
	if err == nil {
		err = r.fillAll(all)
	}
	for i := 0; err == nil && i < len(all); i++ {
		var settings *text
		settings, err = r.text(all[i].settings)
		if err == nil {
			out[i].Settings = settings.words
		}
	}
	return out, err
}
