package worker

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/nats-io/nats.go"

	"parley/internal/cluster/allot"
	"parley/internal/cluster/share"
	"parley/internal/cluster/subject"
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
	m.keepAsking(ctx, share.Interval, again, nil, subject.Share(m.name.Run, m.session), apply, func(ctx context.Context) {
		r := s.Report()
		if m.ask(ctx, subject.Limits(m.name.Run), r, apply) {
			s.Unanswered(r.Seq)
		}
	})
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
	m.keepAsking(ctx, allot.Interval, again, s.Short(), subject.Allotment(m.name.Run, m.session), apply, func(ctx context.Context) {
		m.ask(ctx, subject.Money(m.name.Run), s.Ask(), apply)
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
	msg, err := m.Conn.RequestWithContext(ctx, to, data)
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
