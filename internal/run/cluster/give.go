package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"parley/internal/run/cluster/chain"
	"parley/internal/run/cluster/hub"
	"parley/internal/run/cluster/tally"
	"parley/internal/run/engine"
	"parley/journal"
)

// give puts lots into the queue until there are no more: first those of an earlier log that are not done.
func (l *log) give(ctx context.Context) error {
	l.mu.Lock()
	again := slices.Collect(maps.Values(l.open))
	l.mu.Unlock()
	for _, lot := range again {
		if err := l.put(ctx, &lot); err != nil {
			return err
		}
	}
	for more := true; more; {
		if !l.room(ctx) {
			return nil
		}
		var lot engine.Lot
		select {
		case <-ctx.Done():
			return nil
		case lot, more = <-l.lots:
		}
		if !more {
			break
		}
		l.mu.Lock()
		l.open[lot.First] = lot
		l.mu.Unlock()
		if err := l.put(ctx, &lot); err != nil {
			return err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopped = true
	l.changed.Broadcast()
	return nil
}

// room waits until few lots wait for workers. It returns false when ctx is done.
func (l *log) room(ctx context.Context) bool {
	return l.wait(ctx, func() bool { return l.waiting() >= l.Ahead }) == nil && ctx.Err() == nil
}

// waiting counts the lots that nobody plays.
func (p *play) waiting() int { return len(p.open) - len(p.claimed) }

// put writes what is known of a lot's episodes into its chain, and the lot into the queue.
func (l *log) put(ctx context.Context, lot *engine.Lot) error {
	to := lot.First + lot.Specs.Len()
	items := []any{&journal.Staged{Stage: lot.Stage, First: lot.First, Specs: lot.Specs}, &chain.Nth{Numbers: lot.Nth}}
	playing := false
	for n := lot.First; n < to; n++ {
		if e, ok := l.head.Ended.Of(n); ok {
			items = append(items, &e)
		}
		_, live := l.head.Playing[n]
		playing = playing || live
	}
	if playing {
		in := journal.Span{From: lot.First, To: to}
		err := l.run.Journal().Read(ctx, in, func(e journal.Entry) error {
			if n, ok := episodeOf(e); ok && !l.head.Ended.Has(n) {
				items = append(items, e)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	if err := l.seed(ctx, l.name.Chain(lot.First, to), items...); err != nil {
		return asGone(err)
	}
	for {
		_, err := l.js.Publish(ctx, l.name.Lot(lot.First, to), nil, jetstream.WithExpectStream(l.name.Lots()))
		l.hubRoom.Note(err)
		if err == nil || ctx.Err() != nil || chain.InQueue(err) {
			return nil //nolint:nilerr // whoever ended ctx knows why
		}
		if _, gone := l.queue.Info(ctx); errors.Is(gone, jetstream.ErrStreamNotFound) {
			return errGone
		}
		if !sleep(ctx, hub.BeatInterval) {
			return nil
		}
	}
}

// episodeOf returns the episode that e is a turn or a reply of.
func episodeOf(e journal.Entry) (n int, ok bool) {
	switch e := e.(type) {
	case *journal.Turned:
		return e.Episode, true
	case *journal.Replied:
		return e.Episode, true
	default:
		return 0, false
	}
}

// asGone makes the error of a log that was deleted errGone.
func asGone(err error) error {
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return errGone
	}
	return err
}

// sleep waits. It returns false when ctx is done.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// beats tells workers of the run, hears what they report, and looks whether the log is there.
func (l *log) beats(ctx context.Context) error {
	end, err := l.serve()
	defer end()
	if err != nil {
		return err
	}
	for {
		if err := l.lookAround(); err != nil {
			return err
		}
		if err := l.beat(false); err != nil {
			return err
		}
		if !sleep(ctx, hub.BeatInterval) {
			return nil
		}
		if err := l.lookAtStreams(ctx); err != nil {
			return err
		}
		l.wake() // whoever waits for a worker that is gone
	}
}

// lookAtStreams returns errGone if the log or the queue is gone. The queue may be, once there are no more lots.
func (l *log) lookAtStreams(ctx context.Context) error {
	_, queueErr := l.queue.Info(ctx)
	info, err := l.stream.Info(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	if errors.Is(err, jetstream.ErrStreamNotFound) || errors.Is(queueErr, jetstream.ErrStreamNotFound) && !l.stopped {
		return errGone
	}
	if err == nil {
		l.last = info.State.LastSeq
	}
	return nil
}

// beat tells workers how the run is.
func (l *log) beat(ended bool) error {
	l.mu.Lock()
	b := hub.Beating{
		Run: l.name.Run, Log: l.name.Number, Build: l.Build, Durable: l.Replicas > 1, Taken: l.taken, Draining: l.stopped, Ended: ended,
		AckWait: l.AckWait, Episodes: l.ended, Open: len(l.open), Waiting: l.waiting(),
	}
	l.mu.Unlock()
	b.Paused = l.run.Held()
	data, err := json.Marshal(b)
	if err != nil {
		return fmt.Errorf("coordinator: %w", err)
	}
	_ = l.Conn.Publish(hub.BeatSubject(l.name.Run), data) // the next one may arrive
	return nil
}

// hear notes what a worker reports.
func (l *log) hear(data []byte) {
	var w hub.Working
	if json.Unmarshal(data, &w) != nil || w.Run != l.name.Run {
		return // not one of ours
	}
	l.mu.Lock()
	if w.Leaves || w.Refused != "" {
		delete(l.workers, w.Session)
	} else {
		l.sawWorker(w.Session)
	}
	l.mu.Unlock()
	calls := tally.Report{Partial: len(w.Calls) == 0}
	if w.Refused == "" && (len(w.Calls) == 0 || json.Unmarshal(w.Calls, &calls) == nil) {
		l.tally.Reported(w.Session, calls)
	}
	if w.Leaves {
		l.left(w.Session, w.Owes)
		l.wake()
	}
	if l.Strict && w.Refused != "" {
		l.fail(errors.New(w.Refused))
	}
	if l.Coordinator.Workers != nil {
		l.Coordinator.Workers(w)
	}
}
