package replica

import (
	"context"
	"errors"
	"testing"
	"time"

	"parley/internal/kit/health"
	"parley/llm"
)

func TestChoose(t *testing.T) {
	t.Parallel()
	soon, later := time.Unix(10, 0), time.Unix(20, 0)
	rests := func(from time.Time) (h health.Health) {
		h.Record(policy(), health.Absent, from)
		return h
	}
	failedOnce, trial := health.Health{}, rests(soon)
	failedOnce.Record(policy(), health.Failed, soon)
	trial.Probed(policy(), true, soon)
	for _, c := range []struct {
		name    string
		members []member
		was     int // -1: on no server yet, -2: no session, -3: on none since the first failed it
		tried   []int
		want    int
	}{
		{"the first of equals", []member{{}, {}}, -1, nil, 0},
		{"fewest sessions", []member{{sessions: 2}, {sessions: 1, calls: 1}}, -1, nil, 1},
		{"then fewest calls", []member{{sessions: 1, calls: 2}, {sessions: 1, calls: 1}}, -1, nil, 1},
		{"without a session fewest calls", []member{{sessions: 1, calls: 2}, {sessions: 9, calls: 1}}, -2, nil, 1},
		{"a session stays", []member{{}, {sessions: 5, calls: 5}}, 1, nil, 1},
		{"but leaves a crowded server", []member{{calls: 1}, {calls: 10}}, 1, nil, 0},
		{"nearly crowded", []member{{calls: 1}, {calls: 9}}, 1, nil, 1},
		{"many calls everywhere are no crowd", []member{{calls: 100}, {calls: 140}}, 1, nil, 1},
		{"and leaves a server that rests", []member{{sessions: 5}, {Health: rests(soon)}}, 1, nil, 0},
		{"and one that was tried", []member{{sessions: 5}, {}}, 1, []int{1}, 0},
		{"not on the server that failed it", []member{{}, {sessions: 5}}, -3, nil, 1},
		{"unless all others rest", []member{{}, {Health: rests(soon)}}, -3, nil, 0},
		{"a server that failed another session counts as any", []member{{Health: failedOnce}, {sessions: 5}}, -1, nil, 0},
		{"a server on trial takes one call", []member{{sessions: 5}, {Health: trial}}, -1, nil, 1},
		{"but not two", []member{{sessions: 5}, {calls: 1, Health: trial}}, -1, nil, 0},
		{"if all rest, the one that is back first", []member{{Health: rests(later)}, {Health: rests(soon)}}, -1, nil, 1},
		{"tried is worse than resting", []member{{}, {Health: rests(soon)}}, -1, []int{0}, 1},
		{"if all were tried, any", []member{{}, {}}, -1, []int{0, 1}, 0},
	} {
		members := make([]*member, len(c.members))
		for i := range c.members {
			members[i] = &c.members[i]
		}
		s := &placement{}
		switch c.was {
		case -1:
		case -2:
			s = nil
		case -3:
			s.avoid = members[0]
		default:
			s.at = members[c.was]
		}
		var tried []*member
		for _, i := range c.tried {
			tried = append(tried, members[i])
		}
		if got := choose(members, s, tried); got != members[c.want] {
			t.Errorf("%s: did not choose server %d", c.name, c.want)
		}
	}
}

func TestVerdict(t *testing.T) {
	t.Parallel()
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		name  string
		ctx   context.Context
		err   error
		want  health.Result
		known bool
	}{
		{"an answer", t.Context(), nil, health.OK, true},
		{"a request that is refused", t.Context(), &llm.Error{Kind: llm.KindBadRequest}, health.OK, true},
		{"not reachable", t.Context(), &llm.Error{Kind: llm.KindTransport}, health.Absent, true},
		{"connection lost", t.Context(), &llm.Error{Kind: llm.KindTransport, Uncertain: true}, health.Failed, true},
		{"stalled", t.Context(), &llm.Error{Kind: llm.KindTimeout}, health.Failed, true},
		{"500", t.Context(), &llm.Error{Kind: llm.KindServer}, health.Failed, true},
		{"503", t.Context(), &llm.Error{Kind: llm.KindOverloaded}, health.Failed, true},
		{"429", t.Context(), &llm.Error{Kind: llm.KindRateLimited}, health.OK, false},
		{"no key", t.Context(), &llm.Error{Kind: llm.KindAuth}, health.OK, false},
		{"canceled", over, &llm.Error{Kind: llm.KindTransport}, health.OK, false},
		{"any other error", t.Context(), errors.New("boom"), health.Absent, true},
	} {
		if got, known := verdict(c.ctx, c.err); got != c.want || known != c.known {
			t.Errorf("%s: %v %v, want %v %v", c.name, got, known, c.want, c.known)
		}
	}
}
