package envhttp

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/llm"
	"parley/worlds/rollout/rules"
)

// fake is a host that the test controls.
type fake struct {
	name string
	slow time.Duration // how long making a session takes

	mu        sync.Mutex
	fail      *llm.Error // of every request
	mute      bool       // requests are not answered
	space     int        // sessions that it has room for; 0: any number
	refused   int        // sessions that it had no room for
	sessions  map[string]int64
	making    int
	maxMaking int // made at once
	left      []string
}

func (f *fake) Name() string { return f.name }

func (f *fake) New(id string, _ rules.Opening) Session { return &fakeSession{f, id} }

func (f *fake) Check(ctx context.Context, stray func(string) bool) error {
	f.mu.Lock()
	f.left = slices.DeleteFunc(f.left, stray)
	f.mu.Unlock()
	return f.answer(ctx)
}

func (f *fake) answer(ctx context.Context) error {
	f.mu.Lock()
	fail, mute := f.fail, f.mute
	f.mu.Unlock()
	if mute {
		<-ctx.Done()
		return llm.ContextError(ctx)
	}
	if fail != nil {
		return fail
	}
	return nil
}

func (f *fake) set(fail *llm.Error, mute bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fail, f.mute = fail, mute
}

func (f *fake) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.sessions)
}

func (f *fake) seed(id string) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sessions[id]
}

type fakeSession struct {
	*fake
	id string
}

func (s *fakeSession) Reset(ctx context.Context, seed int64) (json.RawMessage, error) {
	s.mu.Lock()
	s.making++
	s.maxMaking = max(s.maxMaking, s.making)
	s.mu.Unlock()
	time.Sleep(s.slow)
	err := s.answer(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.making--
	if err == nil && s.space > 0 && len(s.sessions) >= s.space {
		s.refused++
		err = errFull
	}
	if err != nil {
		return nil, err
	}
	s.sessions[s.id] = seed
	return nil, nil
}

func (s *fakeSession) Prompt(ctx context.Context) (rules.Prompt, error) { return nil, s.answer(ctx) }

func (s *fakeSession) Step(ctx context.Context, _ string, _ rules.Action) (rules.Result, error) {
	return rules.Result{}, s.answer(ctx)
}

func (s *fakeSession) Close(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sessions, s.id)
	return nil
}

func newFake(name string) *fake { return &fake{name: name, sessions: map[string]int64{}} }

var errDown = &llm.Error{Kind: llm.KindTransport, Message: "refused"}

// in runs f with a pool of hosts on a fake clock, and closes the pool.
func in(t *testing.T, c Config, hosts []*fake, f func(t *testing.T, p *envPool)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var all []Host
		for _, h := range hosts {
			all = append(all, h)
		}
		c.Owner = "run"
		p := newPool(all, c)
		f(t, p)
		p.Close(t.Context())
		for _, h := range hosts {
			if n := h.count(); n > 0 {
				t.Errorf("%s still has %d sessions", h.name, n)
			}
		}
	})
}

func lease(t *testing.T, p *envPool, n int) *Lease {
	t.Helper()
	l, err := p.Lease(t.Context(), n, fmt.Sprint(n), rules.Opening{Env: "e", Seed: int64(n)})
	if err != nil {
		t.Fatal(err)
	}
	return l
}
