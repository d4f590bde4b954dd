package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"time"

	"github.com/nats-io/nats.go"

	"parley/internal/run/cluster/allot"
	"parley/internal/run/cluster/hub"
	"parley/internal/run/cluster/share"
	"parley/journal"
)

// answers is how long an answer may take before the next report.
const answers = share.Interval

// limits keeps the limits of the worker within its shares, until ctx is done.
func (m *member) limits(ctx context.Context) {
	s := share.NewMember(m.session, m.opened.Limits)
	again := make(chan struct{}, 1)
	apply := func(data []byte) {
		var g share.Grant
		if json.Unmarshal(data, &g) == nil && g.Worker == m.session && s.Apply(g) {
			kick(again)
		}
	}
	m.keepAsking(ctx, share.Interval, again, nil, hub.ShareSubject(m.name.Run, m.session), apply, func(ctx context.Context) {
		if s.Expired() > m.first.AckWait/2 && !m.checkLots(ctx) {
			return
		}
		r := s.Report()
		if m.ask(ctx, hub.LimitsSubject(m.name.Run), r, apply) {
			s.Unanswered(r.Seq)
		}
	})
}

// checkLots drops the lots that others have claimed while the worker was stopped or cut off. It is called while the worker has no
// share, so nothing is asked for these lots meanwhile. It returns false if the hub does not answer.
func (m *member) checkLots(ctx context.Context) bool {
	if !m.dropFenced(ctx) {
		return false
	}
	wait(ctx, share.Interval) // the hub may have been away too: then others take lots over only now
	return m.dropFenced(ctx)
}

func (m *member) dropFenced(ctx context.Context) bool {
	m.mu.Lock()
	chains := maps.Clone(m.chains)
	m.mu.Unlock()
	for j, drop := range chains {
		try, cancel := context.WithTimeout(ctx, answers)
		err := j.Check(try)
		cancel()
		switch {
		case errors.Is(err, journal.ErrFenced):
			drop(err)
		case err != nil:
			return false
		}
	}
	return true
}

// money keeps the budget of the worker within its allotment, until ctx is done.
func (m *member) money(ctx context.Context) {
	s := m.opened.Money
	again := make(chan struct{}, 1)
	apply := func(data []byte) {
		var g allot.Grant
		switch {
		case json.Unmarshal(data, &g) != nil || g.Worker != m.session:
		case g.Lost:
			m.leave() // its money counts as lost: another session gets other money
		case s.Apply(g):
			kick(again)
		}
	}
	m.keepAsking(ctx, allot.Interval, again, s.Short(), hub.AllotmentSubject(m.name.Run, m.session), apply, func(ctx context.Context) {
		m.ask(ctx, hub.MoneySubject(m.name.Run), s.Ask(), apply)
	})
}

// keepAsking calls ask every interval, and when somebody wants it, and apply with what comes unasked.
func (m *member) keepAsking(ctx context.Context, every time.Duration, again, short <-chan struct{}, unasked string, apply func([]byte), ask func(context.Context)) {
	sub, err := m.Conn.Subscribe(unasked, func(msg *nats.Msg) { apply(msg.Data) })
	if err != nil {
		m.Log.Error("subscribe", "run", m.name.Run, "why", err)
		m.leave()
		return
	}
	defer func() { _ = sub.Unsubscribe() }()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for ctx.Err() == nil {
		ask(ctx)
		select {
		case <-ctx.Done():
		case <-tick.C:
		case <-again:
		case <-short:
		}
	}
}

// ask sends what a member says, and applies the answer. It reports whether nobody is there to answer.
func (m *member) ask(ctx context.Context, to string, say any, apply func([]byte)) (nobody bool) {
	data, err := json.Marshal(say)
	if err != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, answers)
	defer cancel()
	msg, err := m.Conn.RequestMsgWithContext(ctx, m.name.Ask(to, data))
	if err != nil {
		return errors.Is(err, nats.ErrNoResponders)
	}
	apply(msg.Data)
	return false
}

func kick(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
