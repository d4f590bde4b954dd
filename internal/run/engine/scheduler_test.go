package engine

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/ask/settings"
	"parley/journal"
	"parley/llm"
	"parley/world"
)

// listed is a scheduler of n episodes without a provider.
func listed(n, live int) *scheduler {
	s := newScheduler(bounds{settings: &settings.Settings{Limits: settings.Limits{Live: live}}}, newAgenda(world.Define(crowd()), world.Repeat(world.Spec{Params: []byte("{}")}, n), nil, &journal.Head{}, nil), nil, &stopper{})
	s.staged = func(*journal.Staged, bool) {}
	return s
}

// TestScheduler: episodes begin in order, no more than may be live. A first turn comes first, then the oldest
// ready strand, no two strands of an episode are played at once, and nothing is given out once the run
// stops.
func TestScheduler(t *testing.T) {
	t.Parallel()
	s := listed(9, 3)
	begin := func(n int) step {
		t.Helper()
		st, ok := s.next(step{})
		if !ok || !st.begins || st.number != n {
			t.Fatalf("%+v, want episode %d to begin", st, n)
		}
		ep := &episode{number: n, strands: map[*strand]struct{}{}}
		st.strand = &strand{episode: ep}
		ep.strands[st.strand] = struct{}{}
		return st
	}
	play := func(done step, n int) step {
		t.Helper()
		st, ok := s.next(done)
		if !ok || st.begins || st.strand.episode.number != n {
			t.Fatalf("%+v, want episode %d to be played", st, n)
		}
		return st
	}
	all := []step{begin(0), begin(1), begin(2)}
	if s.mu.Lock(); s.mayBegin() {
		t.Error("a fourth may begin while three are about to")
	}
	s.mu.Unlock()
	s.mu.Lock()
	s.finish(all[2])
	s.finish(all[1])
	s.mu.Unlock()
	zero := play(all[0], 0)
	s.mu.Lock()
	s.resume(zero.strand) // another strand of an episode that is played
	s.mu.Unlock()
	one := play(step{}, 1)
	play(zero, 2) // its first turn
	again := play(step{}, 0)
	s.retire(again.strand.episode, true)
	s.ended(again.strand.episode, &journal.Ended{Episode: 0}, nil)
	s.mu.Lock()
	s.finish(again)
	s.mu.Unlock()
	if st := begin(3); st.strand == nil {
		t.Error("a place that is free is not taken")
	}
	s.stop.stop(ending{state: journal.Stopped})
	s.mu.Lock()
	s.busy = 0
	s.mu.Unlock()
	if st, ok := s.next(step{}); ok {
		t.Errorf("%+v after the run stopped; %v", st, one)
	}
}

// TestBeginsFirst: while most episodes wait for answers, others begin before those that have an answer continue, and their first turn
// comes first too. While few wait, an episode that can continue does.
func TestBeginsFirst(t *testing.T) {
	t.Parallel()
	s := listed(9, 9)
	begun := func() step {
		t.Helper()
		st, ok := s.next(step{})
		if !ok || !st.begins {
			t.Fatalf("%+v, want an episode to begin", st)
		}
		st.strand = &strand{episode: &episode{number: st.number}}
		st.strand.episode.strands = map[*strand]struct{}{st.strand: {}}
		return st
	}
	old, ok := s.next(begun())
	if !ok || old.begins {
		t.Fatalf("%+v, want the first turn", old)
	}
	continued := func(flying int) step {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.resume(old.strand)
		s.finish(old)
		s.flying = flying
		return step{}
	}
	if st, _ := s.next(continued(2)); st.begins || st.strand != old.strand {
		t.Errorf("%+v, want the episode that has an answer", st)
	}
	continued(3)
	if st, _ := s.next(begun()); st.begins || st.strand == old.strand {
		t.Errorf("%+v, want the first turn of the one that began", st)
	}
}

// slowJournal takes a minute for a commit, and counts the answers that are not in it yet.
type slowJournal struct {
	journal.Memory
	answered func() int
	kept     int
	waiting  int // at most
}

func (j *slowJournal) Append(ctx context.Context, entries ...journal.Entry) error {
	time.Sleep(time.Minute) // of the bubble's clock
	j.waiting = max(j.waiting, j.answered()-j.kept)
	for _, e := range entries {
		if r, ok := e.(*journal.Replied); ok && r.Request != nil {
			j.kept++
		}
	}
	return j.Memory.Append(ctx, entries...)
}

// TestSlowDisk: no more calls are in flight or not durable yet than may be in flight.
func TestSlowDisk(t *testing.T) {
	t.Parallel()
	want := undisturbed(t, 0, 40)
	synctest.Test(t, func(t *testing.T) {
		const calls = 3
		answered := 0
		m := &models{width: 100, pause: time.Second, fail: func(*llm.Request) error { answered++; return nil }}
		j := &slowJournal{answered: func() int {
			m.mu.Lock()
			defer m.mu.Unlock()
			return answered
		}}
		c := config(m, j, 40)
		c.Settings.Limits.Concurrency = calls
		res, err := Run(t.Context(), c)
		if err != nil || res.Digest != want.Digest {
			t.Errorf("%+v, %v; want %+v", res, err, want)
		}
		if m.peak != calls || j.waiting != calls {
			t.Errorf("%d calls in flight and %d answers that were not durable, want %d of each at most", m.peak, j.waiting, calls)
		}
	})
}
