package sqlite

import (
	"context"
	"strings"
	"sync"

	"parley/journal"
)

// Recorded is a reply as the file has it.
type Recorded struct {
	Call     int64  // its number in the journal, as the views have it
	Settings string // the request without its messages and its sample, as JSON; empty: none
	*journal.Replied
}

// Replies reads every reply there is when it begins, in order. Without prompts, requests
// have no messages: what was said again at every turn is then not read at all. It holds no
// state of the file while each runs, and reads on meanwhile.
func (s *Store) Replies(ctx context.Context, prompts bool, each func(Recorded) error) error {
	query := repliesSQL + inSpan
	if !prompts {
		query = strings.Replace(query, "prompt, roles", "'[]', ''", 1)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	batches := make(chan []Recorded)
	var failed error
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(batches)
		failed = s.ahead(ctx, query, batches)
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
func (s *Store) ahead(ctx context.Context, query string, to chan<- []Recorded) error {
	var last int64
	err := s.readers.with(func(r *reader) (err error) { last, err = r.last(); return err })
	for after := int64(0); err == nil && after < last; after += readAtOnce {
		var batch []Recorded
		err = s.readers.with(func(r *reader) (err error) {
			batch, err = r.recorded(query, span{after, min(after+readAtOnce, last)})
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

func (r *reader) recorded(query string, in span) (out []Recorded, err error) {
	var all []partial
	err = r.rows(query, []int64{in.after, in.to}, func(c columns) error {
		p, _, err := replied(c)
		all, out = append(all, p), append(out, Recorded{Call: c.s.ColumnInt64(0), Replied: p.Replied})
		return err
	})
	if err == nil {
		err = r.complete(all)
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
