package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"parley/internal/run/cluster/chain"
	"parley/internal/run/cluster/hub"
	"parley/internal/run/cluster/lease"
	"parley/journal"
	"parley/llm"
)

// collectAtOnce is how many messages are collected in one commit at most.
const collectAtOnce = 512

// collect reads the log in order, and records what workers recorded.
func (l *log) collect(ctx context.Context) error {
	consumer, err := chain.Retry(ctx, func(ctx context.Context) (jetstream.Consumer, error) {
		return l.stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{FilterSubjects: []string{l.name.Chains()}, DeliverPolicy: jetstream.DeliverAllPolicy})
	})
	if err != nil {
		return asGone(err)
	}
	messages := make(chan jetstream.Msg, 2*collectAtOnce)
	reading, err := consumer.Consume(func(m jetstream.Msg) {
		select {
		case messages <- m:
		case <-ctx.Done():
		}
	})
	if err != nil {
		return asGone(err)
	}
	defer reading.Stop()
	readers := map[string]*chain.Reader{}
	tick := time.NewTicker(lease.Interval)
	defer tick.Stop()
	for {
		var b batch
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			l.renew()
			continue
		case m := <-messages:
			if err := l.add(&b, readers, m); err != nil {
				return err
			}
		}
		for n := 1; n < collectAtOnce && len(messages) > 0; n++ {
			if err := l.add(&b, readers, <-messages); err != nil {
				return err
			}
		}
		l.take(ctx, &b)
	}
}

// renew writes to the journal. That succeeds only in the one process that may write to it, which is therefore the one that
// divides limits.
func (l *log) renew() {
	at := time.Now()
	l.run.Record(func(err error) {
		if err != nil {
			l.fail(err)
			return
		}
		l.shares.Renew(at)
	}, &journal.Collected{Log: l.name.Number, Through: int64(l.cursor)})
}

// batch is what is collected in one commit.
type batch struct {
	entries []journal.Entry
	costs   map[string]llm.Money // by the session that spent it
	done    []string             // chains whose lots are done
	through uint64
	halted  *chain.Halted
}

func (b *batch) spend(session string, cost llm.Money) {
	if b.costs == nil {
		b.costs = map[string]llm.Money{}
	}
	b.costs[session] = b.costs[session].Plus(cost)
}

// errBroken is wrapped by the error of a log that no worker of ours wrote.
var errBroken = errors.New("the log of the run is broken; resume continues with what is in the run file")

// check returns an error unless e can be of the lot of these episodes. A worker may be somebody else's program.
func (l *log) check(e journal.Entry, from, to int) error {
	n, ok := episodeOf(e)
	end, ends := e.(*journal.Ended)
	if ends {
		n, ok = end.Episode, true
	}
	switch {
	case !ok || n < from || n >= to:
		return fmt.Errorf("%w: %T of episode %d in the lot %d-%d", errBroken, e, n, from, to)
	case ends && (l.ends[n/64]&(1<<(n%64)) != 0 || l.head.Ended.Has(n)):
		return fmt.Errorf("%w: episode %d ends twice", errBroken, n)
	case ends:
		l.ends[n/64] |= 1 << (n % 64)
	}
	return nil
}

// add reads a message. Messages that are in the journal are read for the texts that later ones refer to.
func (l *log) add(b *batch, readers map[string]*chain.Reader, m jetstream.Msg) error {
	meta, err := m.Metadata()
	if err != nil {
		return err
	}
	name, sequence := m.Subject(), meta.Sequence.Stream
	r := readers[name]
	if r == nil {
		r = &chain.Reader{}
		readers[name] = r
	}
	items, err := r.Add(sequence, m.Headers(), m.Data())
	switch {
	case errors.Is(err, chain.ErrForked):
		return fmt.Errorf("%w: %s: message %d: %w", errGone, name, sequence, err)
	case err != nil:
		return fmt.Errorf("%s: message %d: %w: %w", name, sequence, errBroken, err)
	}
	b.through = max(b.through, sequence)
	if n := len(items); n > 0 {
		if _, seed := items[n-1].(*chain.Seeded); seed {
			items = nil // it is from the journal
		}
	}
	from, to, lot := hub.EpisodesOf(name)
	for _, item := range items {
		switch e := item.(type) {
		case *chain.Claim:
			if lot {
				l.claim(from, to, e, sequence <= l.since)
			}
		case *chain.Released:
			if lot {
				l.claim(from, to, nil, false)
			}
		case *chain.Halted:
			b.halted = e
			l.claim(from, to, nil, true)
		case *chain.Done:
			delete(readers, name)
			if lot {
				b.done = append(b.done, name)
			}
		case journal.Entry:
			if sequence <= l.since {
				continue
			}
			if err := l.check(e, from, to); err != nil {
				return fmt.Errorf("%s: message %d: %w", name, sequence, err)
			}
			l.noteFailed(from, e)
			b.entries = append(b.entries, e)
			if r, ok := e.(*journal.Replied); ok && l.money != nil && r.Cost() > 0 {
				b.spend(l.playing(from), r.Cost())
			}
		}
	}
	return nil
}

// playing returns the session that plays a lot.
func (l *log) playing(from int) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.claimed[from].session
}

// claim notes who plays a lot. c is nil if it was given back. open means that calls of the worker may have no record: it left some, or
// claimed before this process began.
func (l *log) claim(from, to int, c *chain.Claim, open bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c == nil {
		l.noteGivenBack(from, open)
	} else {
		l.noteClaim(from, to, c, open)
		if l.workers[c.Session].IsZero() {
			l.sawWorker(c.Session)
		}
	}
	l.changed.Broadcast()
}

// take makes a batch durable, and tells workers.
func (l *log) take(ctx context.Context, b *batch) {
	if b.halted != nil {
		h := b.halted
		var err error
		if h.Error {
			err = errors.New(h.Reason.Detail)
		}
		l.run.Stop(h.State, h.Reason, err)
	}
	ended := 0
	for _, e := range b.entries {
		if _, ok := e.(*journal.Ended); ok {
			ended++
		}
	}
	l.mu.Lock()
	idle := l.pending == 0 && l.err == nil // a batch that was not recorded is not durable because the next one is empty
	l.pending++
	l.mu.Unlock()
	after := func(err error) {
		if err != nil {
			l.fail(err)
		} else {
			l.charge(b)
			l.took(ctx, b, ended)
		}
		l.mu.Lock()
		l.pending-- // not before: the next batch may be taken here once this one is
		l.changed.Broadcast()
		l.mu.Unlock()
	}
	if len(b.entries) == 0 && idle {
		after(nil) // claims, or what is in the journal: they may be read again
		return
	}
	l.cursor = b.through
	all := append(b.entries, &journal.Collected{Log: l.name.Number, Through: int64(b.through)})
	l.run.Record(after, all[0], all[1:]...)
}

// took notes that a batch is durable.
func (l *log) took(ctx context.Context, b *batch, ended int) {
	l.mu.Lock()
	l.taken = max(l.taken, b.through)
	l.read = max(l.read, b.through)
	l.ended += ended
	l.done += len(b.done)
	for _, name := range b.done {
		from, _, _ := hub.EpisodesOf(name)
		delete(l.open, from)
		l.noteGivenBack(from, false)
	}
	taken := l.taken
	l.changed.Broadcast()
	l.mu.Unlock()
	if l.Replicas == 1 || l.money != nil {
		_ = l.Conn.Publish(hub.TakenSubject(l.name.Run), l.name.AppendTaken(nil, taken)) // beats repeat it
	}
	for _, name := range b.done {
		if !l.retain { // Done stays: whoever gets the lot again must see it
			l.purge(ctx, name)
		}
	}
}

// purge removes the messages of a chain but for the last. It is not waited for, and may fail: then they stay.
func (l *log) purge(_ context.Context, name string) {
	_ = l.Conn.Publish("$JS.API.STREAM.PURGE."+l.name.Stream(), fmt.Appendf(nil, `{"filter":%q,"keep":1}`, name))
}

// finish waits until the run is over: there are no more lots, nobody plays one, and everything is collected.
func (l *log) finish(ctx context.Context) error {
	if err := l.wait(ctx, func() bool { return !l.stopped }); err != nil || ctx.Err() != nil {
		return err
	}
	_ = l.beat(false) // workers give their lots back
	_, err := chain.Retry(ctx, func(ctx context.Context) (any, error) { return nil, l.js.DeleteStream(ctx, l.name.Lots()) })
	if err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) && ctx.Err() == nil {
		return err
	}
	l.catchUp(ctx) // a claim may be the last message
	_ = l.wait(ctx, l.beingPlayed)
	l.catchUp(ctx)
	err = l.wait(ctx, func() bool { return l.money != nil && l.anyWorker() }) // what workers do not need is not at risk
	if errors.Is(err, errGone) {
		err = nil // what could be collected is
	}
	if l.money != nil {
		err = errors.Join(err, l.money.SecureRisk())
	}
	_ = l.beat(true)
	flush, cancel := context.WithTimeout(ctx, removeTimeout)
	defer cancel()
	_ = l.Conn.FlushWithContext(flush)
	l.drainReports(ctx, removeTimeout)
	return err
}

// drainReports waits until what workers reported before their last entries is counted, for at most limit: a worker may report without end.
func (l *log) drainReports(ctx context.Context, limit time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	l.mu.Lock()
	stats := l.stats
	l.mu.Unlock()
	for stats != nil {
		if n, _, err := stats.Pending(); n == 0 || err != nil || !sleep(ctx, time.Millisecond) {
			return
		}
	}
}

// catchUp waits until everything is collected that the log has now.
func (l *log) catchUp(ctx context.Context) {
	if info, err := l.stream.Info(ctx); err == nil {
		_ = l.wait(ctx, func() bool { return l.read < info.State.LastSeq })
	}
}

// wait waits while something holds, and returns why this log ended, if it did. The lock is held when more is called.
func (l *log) wait(ctx context.Context, more func() bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.err == nil && ctx.Err() == nil && more() {
		l.changed.Wait()
	}
	return l.err
}

// anyWorker reports whether a worker has not left. The lock is held.
func (l *log) anyWorker() bool {
	for _, at := range l.workers {
		if time.Since(at) < hub.Silent {
			return true
		}
	}
	return false
}

// beingPlayed reports whether a worker that is there plays a lot. The lock is held.
func (l *log) beingPlayed() bool {
	for _, c := range l.claimed {
		if time.Since(l.workers[c.session]) < hub.Silent {
			return true
		}
	}
	return false
}
