package replica

import (
	"context"
	"errors"
	"testing"
	"time"

	"parley/llm"
)

func TestChoose(t *testing.T) {
	t.Parallel()
	soon, later := time.Unix(10, 0), time.Unix(20, 0)
	rests := func(until time.Time) health { return health{until: until} }
	for _, c := range []struct {
		name    string
		members []member
		was     int // -1: nowhere, -2: no session, -3: nowhere since the first failed it
		tried   []int
		want    int
	}{
		{"the first of equals", []member{{}, {}}, -1, nil, 0},
		{"fewest sessions", []member{{sessions: 2}, {sessions: 1, calls: 1}}, -1, nil, 1},
		{"then fewest calls", []member{{sessions: 1, calls: 2}, {sessions: 1, calls: 1}}, -1, nil, 1},
		{"without a session fewest calls", []member{{sessions: 1, calls: 2}, {sessions: 9, calls: 1}}, -2, nil, 1},
		{"a session stays", []member{{}, {sessions: 5, calls: 5}}, 1, nil, 1},
		{"but not where it is crowded", []member{{calls: 1}, {calls: 10}}, 1, nil, 0},
		{"nearly crowded", []member{{calls: 1}, {calls: 9}}, 1, nil, 1},
		{"many everywhere are no crowd", []member{{calls: 100}, {calls: 140}}, 1, nil, 1},
		{"and not where it rests", []member{{sessions: 5}, {health: rests(soon)}}, 1, nil, 0},
		{"nor where it was tried", []member{{sessions: 5}, {}}, 1, []int{1}, 0},
		{"rather not where it failed", []member{{}, {sessions: 5}}, -3, nil, 1},
		{"unless all others rest", []member{{}, {health: rests(soon)}}, -3, nil, 0},
		{"who failed others is as good", []member{{health: health{strikes: 1}}, {sessions: 5}}, -1, nil, 0},
		{"who is on trial takes one", []member{{sessions: 5}, {health: health{trial: true}}}, -1, nil, 1},
		{"and not two", []member{{sessions: 5}, {calls: 1, health: health{trial: true}}}, -1, nil, 0},
		{"when all rest, who is back first", []member{{health: rests(later)}, {health: rests(soon)}}, -1, nil, 1},
		{"tried is worse than resting", []member{{}, {health: rests(soon)}}, -1, []int{0}, 1},
		{"when all were tried, any", []member{{}, {}}, -1, []int{0, 1}, 0},
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
			s.shun = members[0]
		default:
			s.at = members[c.was]
		}
		var tried []*member
		for _, i := range c.tried {
			tried = append(tried, members[i])
		}
		if got := choose(members, s, tried); got != members[c.want] {
			t.Errorf("%s: chose another than %d", c.name, c.want)
		}
	}
}

func TestVerdict(t *testing.T) {
	t.Parallel()
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		name string
		ctx  context.Context
		err  error
		want judgement
	}{
		{"an answer", t.Context(), nil, lives},
		{"a refusal of ours", t.Context(), &llm.Error{Kind: llm.KindBadRequest}, lives},
		{"not there", t.Context(), &llm.Error{Kind: llm.KindTransport}, absent},
		{"broken off", t.Context(), &llm.Error{Kind: llm.KindTransport, Uncertain: true}, failed},
		{"stalled", t.Context(), &llm.Error{Kind: llm.KindTimeout}, failed},
		{"500", t.Context(), &llm.Error{Kind: llm.KindServer}, failed},
		{"503", t.Context(), &llm.Error{Kind: llm.KindOverloaded}, failed},
		{"429", t.Context(), &llm.Error{Kind: llm.KindRateLimited}, neither},
		{"no key", t.Context(), &llm.Error{Kind: llm.KindAuth}, neither},
		{"called off", over, &llm.Error{Kind: llm.KindTransport}, neither},
		{"any other error", t.Context(), errors.New("boom"), absent},
	} {
		if got := verdict(c.ctx, c.err); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestHealth plays a server's life: it rests after three failures in a row or when it is not
// there, longer each time, and is tried with one call before it is trusted again.
func TestHealth(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	var h health
	for i, v := range []judgement{failed, failed, lives, failed, neither, failed} {
		if h.note(v, now) {
			t.Fatalf("it rests after event %d", i)
		}
	}
	if !h.note(failed, now) || !h.until.Equal(now.Add(restFirst)) {
		t.Fatalf("three failures in a row: %+v", h)
	}
	if h.note(absent, now) || h.due(now) || !h.due(now.Add(restFirst)) {
		t.Fatalf("while it rests: %+v", h)
	}
	now = now.Add(restFirst)
	h.checked(false, now)
	if !h.until.Equal(now.Add(2 * restFirst)) {
		t.Fatalf("not back: %+v", h)
	}
	now = now.Add(2 * restFirst)
	h.checked(true, now)
	if h.resting() || !h.trial {
		t.Fatalf("back: %+v", h)
	}
	if !h.note(failed, now) || !h.until.Equal(now.Add(4*restFirst)) {
		t.Fatalf("one failure on trial: %+v", h)
	}
	h.checked(true, now)
	if h.note(lives, now); h != (health{}) {
		t.Fatalf("an answer on trial: %+v", h)
	}
	if !h.note(absent, now) {
		t.Fatal("a server that is not there goes on")
	}
	for range 20 {
		h.rest(now)
	}
	if !h.until.Equal(now.Add(restMost)) {
		t.Errorf("it rests until %v", h.until)
	}
}
