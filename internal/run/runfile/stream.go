package runfile

import (
	"context"
	"sync"

	"parley/journal"
)

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
	read := func(r *reader, in span, t totals) (err error) {
		batch, err = r.recorded(prompts, in)
		if n += int64(len(batch)); err == nil && after == 0 && in.to == t.seq {
			err = r.complete(n, t.calls, "replies")
		}
		return err
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

func (r *reader) recorded(prompts bool, in span) (out []Recorded, err error) {
	var all []unfilled
	err = r.scan(repliesSQL+inSpan, in, func(c rowReader) error {
		p, _, err := readReplied(c, prompts)
		if err == nil && !r.lost.Has(p.Episode) {
			all, out = append(all, p), append(out, Recorded{Call: c.Key, Replied: p.Replied})
		}
		return err
	})
	if err == nil {
		err = r.fillAll(all)
	}
	for i := 0; err == nil && i < len(all); i++ {
		var settings *sqliteText
		if settings, err = r.text(all[i].settings); err == nil {
			out[i].Settings = settings.words
		}
	}
	return out, err
}
