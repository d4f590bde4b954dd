package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"parley/internal/run/cluster/chain"
	"parley/internal/run/cluster/hub"
	"parley/internal/run/engine"
	"parley/journal"
	"parley/world"
)

const (
	// suspectAfter is after how many deaths an episode is a suspect: it is played when the others of its lot have ended, with nothing beside
	// it but other suspects of the lot. A death is no evidence against each of them, so after each further one half as many are
	// played at once.
	suspectAfter = 2
	// failedAfter is after how many deaths at one episode alone it is recorded as failed.
	failedAfter = 3
)

// lot claims a lot and plays it.
func (m *member) lot(msg jetstream.Msg) {
	ctx, cancel := context.WithCancelCause(m.ctx)
	defer cancel(errLeft)
	stop := m.keep(ctx, msg)
	defer stop()
	from, to, ok := hub.EpisodesOf(msg.Subject())
	if !ok {
		_ = msg.Term()
		return
	}
	c := chain.Config{JetStream: m.js, Stream: m.stream, Subject: m.name.Chain(from, to), Session: m.session, Room: &m.room}
	// A hub that loses a node gives out again what is being played. It does so once more after the lease, if nobody plays it then.
	if m.plays(c.Subject) {
		return
	}
	c.Plays = func(ctx context.Context, session string) bool { return m.playedBy(ctx, session, c.Subject) }
	if !m.first.Durable || m.opened.Money != nil { // money is spent when the coordinator knows of it
		c.Taken = m.taken.wait
	}
	j, past, err := chain.Open(ctx, c)
	switch {
	case past.Done:
		_ = msg.Ack()
		return
	case errors.Is(err, chain.ErrPlayed):
		return
	case err != nil:
		m.problem(ctx, "claim", err)
		return
	}
	defer m.hold(j, cancel)()
	if err := m.play(ctx, cancel, j, past); err != nil {
		m.problem(ctx, "play", err)
		if m.draining.Err() != nil || ctx.Err() == nil {
			_ = msg.Nak()
		}
		return
	}
	_ = msg.Ack() // if it is lost, the next worker finds that the lot is done
}

// hold notes that the lot of a chain is played, until release is called.
func (m *member) hold(j *chain.Chain, drop context.CancelCauseFunc) (release func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.chains[j] = drop
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.chains, j)
	}
}

// plays reports whether this worker plays the lot of a chain.
func (m *member) plays(subject string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for j := range m.chains {
		if j.Subject() == subject {
			return true
		}
	}
	return false
}

// answerPlays tells another worker whether this one plays a lot.
func (m *member) answerPlays(msg *nats.Msg) {
	answer := "no"
	if m.plays(string(msg.Data)) {
		answer = "yes"
	}
	_ = msg.Respond([]byte(answer)) // it is asked again
}

// reconnects is how long a worker may take to find another node of the hub.
const reconnects = 2 * time.Second

// playedBy reports whether another worker plays the lot of a chain. It asks for some time: the other may have lost its node too.
func (m *member) playedBy(ctx context.Context, session, subject string) bool {
	ctx, cancel := context.WithTimeout(ctx, min(reconnects, m.first.AckWait))
	defer cancel()
	for {
		msg, err := m.Conn.RequestWithContext(ctx, hub.PlaysSubject(m.name.Run, session), []byte(subject))
		if err == nil {
			return string(msg.Data) == "yes"
		}
		if !sleep(ctx, fullWait) {
			return false
		}
	}
}

// problem logs an error that is not the normal end of something.
func (m *member) problem(ctx context.Context, what string, err error) {
	if ctx.Err() == nil && !errors.Is(err, journal.ErrFenced) && !errors.Is(err, errReleased) {
		m.Log.Error(what, "run", m.name.Run, "why", err)
	}
}

// errReleased says that a lot was given back.
var errReleased = errors.New("worker: the lot was given back")

// keep tells the hub that the lot is being played, until stop is called.
func (m *member) keep(ctx context.Context, msg jetstream.Msg) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(max(m.first.AckWait/4, 10*time.Millisecond))
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				_ = msg.InProgress()
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// play plays the lot of a chain that was claimed, and records that it is done.
func (m *member) play(ctx context.Context, cancel context.CancelCauseFunc, j *chain.Chain, past chain.Past) error {
	lot, err := m.lotOf(ctx, j, past)
	if err != nil {
		return err
	}
	lj := &lotJournal{Chain: j, begun: m.begun, link: m.link, lot: ctx, fenced: cancel}
	var tried, suspects []int
	for i := range lot.Specs.Len() {
		switch n := lot.First + i; {
		case slices.Contains(past.Tried, n): // a worker may have claimed anything
			tried = append(tried, n)
		case past.Deaths(n) >= suspectAfter:
			suspects = append(suspects, n)
		}
	}
	past.Tried = tried
	suspects = slices.Concat(tried, suspects) // those again first, or their deaths would not be counted
	m.setSuspects(lot.First, len(suspects))
	defer m.setSuspects(lot.First, 0)
	if len(suspects) < lot.Specs.Len() {
		if err := m.together(ctx, lj, lot, suspects); err != nil {
			return err
		}
	}
	if err := m.apart(ctx, lj, lot, past, suspects); err != nil {
		return err
	}
	m.tell(false) // the coordinator may end the run as soon as it knows that the lot is done
	return j.Put(ctx, &chain.Done{})
}

// lotOf returns the lot that a chain is of.
func (m *member) lotOf(ctx context.Context, j *chain.Chain, past chain.Past) (lot engine.Lot, err error) {
	head, err := j.Head(ctx)
	if err != nil {
		return lot, err
	}
	if len(head.Stages) != 1 {
		return lot, errors.New("worker: the chain does not say which episodes it is of")
	}
	st := head.Stages[0]
	return engine.Lot{Stage: st.Stage, First: st.First, Specs: st.Specs, Nth: past.Nth}, nil
}

// together plays the episodes of a lot but for the suspects.
func (m *member) together(ctx context.Context, j *lotJournal, lot engine.Lot, suspects []int) error {
	m.waitFor(lot.First, m.alone.RLock)
	defer m.alone.RUnlock()
	lot.Skip = func(n int) bool { return slices.Contains(suspects, n) }
	return m.engine(ctx, j, lot)
}

// engine plays a lot, and records why it could not be played to its end.
func (m *member) engine(ctx context.Context, j *lotJournal, lot engine.Lot) error {
	res, err := m.player.Play(ctx, m.draining, j, lot, m.wantMore)
	if err == nil && res.State == journal.Complete {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	items := []any{&chain.Released{}}
	if m.draining.Err() == nil || err != nil {
		h := &chain.Halted{State: res.State, Reason: res.Reason, Error: err != nil}
		if err != nil {
			h.State, h.Reason = journal.Failed, journal.Reason{Kind: journal.ByError, Detail: err.Error()}
		}
		items = []any{h, &chain.Released{}}
	}
	m.tell(false)
	if err := j.Put(ctx, items...); err != nil {
		return err
	}
	return errReleased
}

// apart plays the suspects of a lot in groups, and nothing else meanwhile. An episode at which workers keep dying although it is alone fails.
func (m *member) apart(ctx context.Context, j *lotJournal, lot engine.Lot, past chain.Past, suspects []int) error {
	if len(suspects) == 0 {
		return nil
	}
	m.waitFor(lot.First, m.alone.Lock)
	defer m.alone.Unlock()
	size := cmp.Or(past.Group, len(suspects))
	if past.Group == 1 && len(past.Tried) == 1 && past.TriedDeaths >= failedAfter {
		head, err := j.Head(ctx)
		if err != nil {
			return err
		}
		n, why := suspects[0], fmt.Sprintf("the process that plays it died %d times", past.TriedDeaths)
		e := &journal.Ended{Episode: n, Attempt: head.Playing[n].Attempt, At: time.Now(), Outcome: world.Outcome{Failed: why}}
		if err := j.Append(ctx, e); err != nil {
			return err
		}
		suspects, size = suspects[1:], len(suspects) // it is found: the others are not suspects because of it
	}
	for len(suspects) > 0 {
		m.setSuspects(lot.First, len(suspects))
		group := suspects[:min(size, len(suspects))]
		if !m.awaitBeat(ctx) { // without a coordinator the try could take long, and a kill would count as a death at the group
			return context.Cause(ctx)
		}
		if err := j.Put(ctx, &chain.Claim{Session: m.session, Trying: group}); err != nil {
			return err
		}
		lot.Skip = func(n int) bool { return !slices.Contains(group, n) }
		if err := m.engine(ctx, j, lot); err != nil {
			return err
		}
		suspects = suspects[len(group):]
	}
	return nil
}

// setSuspects notes how many suspects of a lot have not ended.
func (m *member) setSuspects(first, n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.suspects[first] = n; n == 0 {
		delete(m.suspects, first)
	}
}

// waitFor notes that a lot waits, until lock returns.
func (m *member) waitFor(first int, lock func()) {
	set := func(waits bool) {
		m.mu.Lock()
		defer m.mu.Unlock()
		if delete(m.waiting, first); waits {
			m.waiting[first] = true
		}
	}
	set(true)
	lock()
	set(false)
}

// lotJournal is the journal of a lot. It leaves out what a process says about itself: the coordinator records
// when the run is opened, closed and staged.
type lotJournal struct {
	*chain.Chain
	begun  *journal.Begun
	link   *link
	lot    context.Context //nolint:containedctx // ends when the lot is dropped
	fenced context.CancelCauseFunc
}

// Head returns the head of the chain, as one of the run.
func (j *lotJournal) Head(ctx context.Context) (*journal.Head, error) {
	h, err := j.Chain.Head(ctx)
	if err != nil {
		return nil, err
	}
	h.Begun = j.begun
	return h, nil
}

// Append appends the entries of episodes, and waits while the hub cannot be reached, until the lot is dropped.
// If another worker has claimed the lot, it is dropped at once.
func (j *lotJournal) Append(_ context.Context, entries ...journal.Entry) error {
	kept := make([]journal.Entry, 0, len(entries))
	for _, e := range entries {
		switch e.(type) {
		case *journal.Turned, *journal.Replied, *journal.Ended:
			kept = append(kept, e)
		}
	}
	if len(kept) == 0 {
		return nil
	}
	end := j.link.write()
	err := j.Chain.Append(j.lot, kept...) //nolint:contextcheck // the engine records what it has, even when it is aborted
	end(err)
	if errors.Is(err, journal.ErrFenced) {
		j.fenced(err)
	}
	return err
}
