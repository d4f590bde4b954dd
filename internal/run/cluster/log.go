package cluster

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"parley/internal/run/cluster/chain"
	"parley/internal/run/cluster/hub"
	"parley/internal/run/engine"
	"parley/journal"
)

// log is the streams of a run from when they are made until they are gone. If the hub loses them, the run continues with another log.
type log struct {
	*play
	name   hub.Log
	head   *journal.Head // before it began
	stream jetstream.Stream
	queue  jetstream.Stream
	own    *chain.Chain   // that of the run
	retain bool           // nothing of it is deleted before the run is over
	other  bool           // another process played the run before: it may only be paused
	since  uint64         // the message up to which the journal had everything
	cursor uint64         // the last one that was recorded; collect has it
	ends   map[int]uint64 // by episode / 64: a bit for each that ended since the log began; collect has it
}

// begin finds the log that the journal was collected from, or makes a new one.
func (p *play) begin(ctx context.Context, head *journal.Head) (*log, error) {
	begun := p.run.Begun()
	begun.Prices = p.prices
	l := &log{play: p, name: hub.Log{Run: begun.Run, Number: head.Collected.Log}, head: head, ends: map[int]uint64{}}
	if err := l.checkOver(ctx); err != nil {
		return nil, err
	}
	if l.name.Number != 0 && !p.forked {
		found, err := l.find(ctx)
		if err != nil {
			return nil, err
		}
		if found {
			l.other = p.epoch == 0
			return l, l.makeQueue(ctx)
		}
	}
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	l.name.Number = int64(binary.BigEndian.Uint64(b[:])>>1 | 1)
	return l, l.create(ctx, &begun)
}

// Keys in the metadata of a log's stream.
const (
	metaNumber   = "parley-log"      // its number
	metaRetained = "parley-retained" // everything of the run is in it
)

// find reports whether the stream of the log exists.
func (l *log) find(ctx context.Context) (bool, error) {
	s, err := chain.Retry(ctx, func(ctx context.Context) (jetstream.Stream, error) { return l.js.Stream(ctx, l.name.Stream()) })
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		return false, nil
	case err != nil:
		return false, err
	}
	l.stream, l.retain = s, s.CachedInfo().Config.Metadata[metaRetained] != ""
	found := l.isIn(s.CachedInfo())
	if !found && l.epoch > 0 {
		return false, errTaken // this process made the last one
	}
	return found, nil
}

// isIn reports whether a stream is of this log: another coordinator may have made another one.
func (l *log) isIn(s *jetstream.StreamInfo) bool {
	return s.Config.Metadata[metaNumber] == strconv.FormatInt(l.name.Number, 10)
}

// overAge is how long a hub keeps that a run is over.
const overAge = 7 * 24 * time.Hour

// markOver notes in the hub that the run is over, for a coordinator that played it before and may only be paused: it must not begin the
// run again.
func (l *log) markOver(ctx context.Context) error {
	_, err := l.make(ctx, jetstream.StreamConfig{Name: hub.OverStream, Subjects: []string{hub.OverSubject("*")}, MaxAge: overAge, MaxMsgsPerSubject: 1})
	if err == nil {
		_, err = l.js.Publish(ctx, hub.OverSubject(l.name.Run), nil)
	}
	return err
}

// checkOver returns errTaken if another coordinator has finished the run since this one began. One that begins wants the run to be played, whoever finished it
// before.
func (l *log) checkOver(ctx context.Context) error {
	s, err := chain.Retry(ctx, func(ctx context.Context) (jetstream.Stream, error) { return l.js.Stream(ctx, hub.OverStream) })
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if l.epoch == 0 {
		return s.Purge(ctx, jetstream.WithPurgeSubject(hub.OverSubject(l.name.Run)))
	}
	_, err = s.GetLastMsgForSubject(ctx, hub.OverSubject(l.name.Run))
	switch {
	case err == nil:
		return errTaken
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return nil
	default:
		return err
	}
}

// make makes a stream, unless it exists.
func (l *log) make(ctx context.Context, c jetstream.StreamConfig) (jetstream.Stream, error) {
	c.Replicas, c.Storage = l.Replicas, jetstream.MemoryStorage
	if l.Replicas > 1 {
		c.Storage = jetstream.FileStorage
	}
	s, err := chain.Retry(ctx, func(ctx context.Context) (jetstream.Stream, error) { return l.js.CreateOrUpdateStream(ctx, c) })
	if err != nil {
		return nil, err
	}
	return s, nil
}

// create makes the streams, and removes those of an earlier log.
func (l *log) create(ctx context.Context, begun *journal.Begun) (err error) {
	_, err = chain.Retry(ctx, func(ctx context.Context) (jetstream.Stream, error) { return l.js.Stream(ctx, l.name.Stream()) })
	l.other = err == nil && l.epoch == 0
	if err := l.remove(ctx); err != nil {
		return err
	}
	about := map[string]string{metaNumber: strconv.FormatInt(l.name.Number, 10)}
	if l.retain = l.Retain && l.head.Ended.Len()+len(l.head.Playing) == 0; l.retain {
		about[metaRetained] = "yes"
	}
	l.stream, err = l.make(ctx, jetstream.StreamConfig{
		Name: l.name.Stream(), Subjects: []string{l.name.Chains()}, Metadata: about,
		Retention: jetstream.LimitsPolicy, Discard: jetstream.DiscardNew, Duplicates: 2 * time.Minute,
	})
	if err != nil {
		return err
	}
	if err := l.seed(ctx, l.name.Begun(), begun); err != nil {
		return err
	}
	return l.makeQueue(ctx)
}

// makeQueue makes the queue of lots, unless it exists.
func (l *log) makeQueue(ctx context.Context) (err error) {
	l.queue, err = l.make(ctx, jetstream.StreamConfig{
		Name: l.name.Lots(), Subjects: []string{l.name.Queue()},
		Retention: jetstream.WorkQueuePolicy, Discard: jetstream.DiscardNew, DiscardNewPerSubject: true, MaxMsgsPerSubject: 1,
	})
	if err != nil {
		return err
	}
	_, err = chain.Retry(ctx, func(ctx context.Context) (jetstream.Consumer, error) {
		return l.queue.CreateOrUpdateConsumer(ctx, jetstream.ConsumerConfig{
			Durable: hub.Workers, AckPolicy: jetstream.AckExplicitPolicy, AckWait: l.AckWait, MaxAckPending: -1, MaxDeliver: -1,
		})
	})
	if err != nil {
		return err
	}
	return nil
}

// seed writes the beginning of a chain, unless it is there.
func (l *log) seed(ctx context.Context, name string, items ...any) error {
	return chain.Seed(ctx, chain.Config{JetStream: l.js, Stream: l.stream, Subject: name, Session: rand.Text(), Room: l.hubRoom}, append(items, &chain.Seeded{})...)
}

// removeTimeout is how long deleting the streams may take.
const removeTimeout = 10 * time.Second

// remove deletes the streams.
func (l *log) remove(ctx context.Context) error {
	for _, name := range []string{l.name.Lots(), l.name.Stream()} {
		_, err := chain.Retry(ctx, func(ctx context.Context) (any, error) { return nil, l.js.DeleteStream(ctx, name) })
		if err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
			return fmt.Errorf("delete %s: %w", name, err)
		}
	}
	return nil
}

// give puts lots into the queue until there are no more: first those of an earlier log that are not done.
func (l *log) give(ctx context.Context) error {
	l.mu.Lock()
	again := slices.Collect(maps.Values(l.open))
	l.mu.Unlock()
	for _, lot := range again {
		l.mu.Lock()
		l.waits[lot.First] = time.Now()
		l.mu.Unlock()
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
		l.open[lot.First], l.waits[lot.First] = lot, time.Now()
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
	return l.wait(ctx, func() bool { return l.waiting() >= maxWaiting }) == nil && ctx.Err() == nil
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

// Rebuild begins a lost journal again, from a log with Coordinator.Retain. Whoever plays the run next collects the rest.
func Rebuild(ctx context.Context, conn *nats.Conn, run string, into journal.Journal) error {
	js, err := jetstream.New(conn)
	if err != nil {
		return err
	}
	name := hub.Log{Run: run}
	stream, err := js.Stream(ctx, name.Stream())
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound) || errors.Is(err, jetstream.ErrInvalidStreamName):
		return fmt.Errorf("the hub has nothing of run %q; parley cluster lists the runs", run)
	case err != nil:
		return err
	}
	about := stream.CachedInfo().Config.Metadata
	if name.Number, err = strconv.ParseInt(about[metaNumber], 10, 64); err != nil || about[metaRetained] == "" {
		return fmt.Errorf("the hub does not have everything of run %s: it was not begun with --retain, or the hub was lost meanwhile", run)
	}
	j, err := chain.Read(ctx, chain.Config{JetStream: js, Stream: stream, Subject: name.Begun()})
	if err != nil {
		return err
	}
	head, err := j.Head(ctx)
	if err != nil {
		return err
	}
	if head.Begun == nil {
		return fmt.Errorf("the hub does not say how run %s was set up", run)
	}
	return into.Append(ctx, head.Begun, &journal.Collected{Log: name.Number})
}

// Logs returns the runs that a hub has a log of.
func Logs(ctx context.Context, conn *nats.Conn) (runs []string, err error) {
	js, err := jetstream.New(conn)
	if err != nil {
		return nil, err
	}
	streams := js.ListStreams(ctx)
	for s := range streams.Info() {
		if name := strings.TrimSuffix(strings.TrimPrefix(s.Config.Name, "P_"), "_LOG"); s.Config.Metadata[metaNumber] != "" && s.Config.Name == (hub.Log{Run: name}).Stream() {
			runs = append(runs, name)
		}
	}
	return runs, streams.Err()
}
