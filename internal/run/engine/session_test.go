package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/journal"
	"parley/llm"
	"parley/world"
)

// sessions notes the sessions of requests, and which were released.
type sessions struct {
	mu       sync.Mutex
	asked    map[string]bool
	released []string // with w for whole
	late     []string // asked in after their release
}

func (s *sessions) watch(req *llm.Request) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.Contains(s.released, req.Session+"w") {
		s.late = append(s.late, req.Session)
	}
	s.asked[req.Session] = true
	return nil
}

func (s *sessions) release(session string, whole bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if whole {
		session += "w"
	}
	s.released = append(s.released, session)
}

// TestSessions: the requests of an episode carry its session, which is released once, when the
// episode ended.
func TestSessions(t *testing.T) {
	t.Parallel()
	want := undisturbed(t, 3, 5)
	s := &sessions{asked: map[string]bool{}}
	c := config(&models{width: 9, faults: 3, fail: s.watch}, &journal.Memory{}, 5)
	c.Begun.Run = "run"
	c.Released = s.release
	got, err := Run(t.Context(), c)
	if err != nil || got.Digest != want.Digest {
		t.Errorf("sessions changed the outcome: %+v, %v", got, err)
	}
	slices.Sort(s.released)
	if r := fmt.Sprint(s.released); r != "[run-0-0w run-1-0w run-2-0w run-3-0w run-4-0w]" || len(s.asked) != 5 || !s.asked["run-3-0"] || s.late != nil {
		t.Errorf("released %s, asked in %v, late %v", r, s.asked, s.late)
	}
}

// TestSessionsAcrossProcesses: an episode that is resumed keeps its session. One that begins again,
// since its kind is external, releases the old one, whether the process was aborted or killed.
func TestSessionsAcrossProcesses(t *testing.T) {
	t.Parallel()
	for _, outside := range []bool{false, true} {
		for _, killed := range []bool{false, true} {
			t.Run(fmt.Sprintf("external %v, killed %v", outside, killed), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					j := &journal.Memory{}
					s := &sessions{asked: map[string]bool{}}
					sit := func(after time.Duration) Result {
						ctx, cancel := context.WithTimeoutCause(t.Context(), after, errors.New("enough"))
						defer cancel()
						c := config(&models{width: 9, pause: time.Second, fail: s.watch}, j, 5)
						c.Begun.Run, c.Released = "run", s.release
						if outside {
							c.Kind = world.Define(external{crowd()})
						}
						r, err := Run(ctx, c)
						if err != nil {
							t.Fatal(err)
						}
						return r
					}
					if r := sit(1200 * time.Millisecond); r.State != journal.Stopped || r.Ended == 5 {
						t.Fatalf("%+v", r)
					}
					if killed {
						s.released = nil // nobody was left to say so
					}
					if r := sit(time.Hour); r.State != journal.Complete {
						t.Fatalf("%+v", r)
					}
					second := slices.ContainsFunc(s.released, func(x string) bool { return strings.HasSuffix(x, "-1w") })
					givenUp := slices.ContainsFunc(s.released, func(x string) bool { return strings.HasSuffix(x, "-0") })
					if second != outside || givenUp != outside || s.late != nil {
						t.Errorf("released %v, late %v", s.released, s.late)
					}
				})
			})
		}
	}
}
