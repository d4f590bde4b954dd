package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley/journal"
	"parley/llm"
	"parley/world"
)

// TestStopper: the first ending counts, a complete run calls no drains, and wait waits for drains.
func TestStopper(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			first ending
			want  int64
		}{{ending{state: journal.Complete}, 0}, {failedWith(errCut), 1}, {ending{state: journal.Stopped}, 1}} {
			var drained atomic.Int64
			s := &stopper{drains: []func(){func() { time.Sleep(time.Second); drained.Add(1) }}}
			s.stop(c.first)
			s.stop(ending{state: journal.Stopped, reason: journal.Reason{Kind: journal.ByUser}})
			s.fail(errAstray)
			got, err := s.wait(), c.first.err
			if err == nil {
				err = errAstray
			}
			if got.state != c.first.state || got.reason != c.first.reason || !errors.Is(got.err, err) || drained.Load() != c.want {
				t.Errorf("%+v: %+v, %d drained", c.first, got, drained.Load())
			}
		}
	})
}

// TestWhenDone: end waits for a function that has begun, and none begins after it.
func TestWhenDone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		begun, never := false, false
		late := whenDone(ctx, func() { never = true })
		late()
		end := whenDone(ctx, func() { time.Sleep(time.Second); begun = true })
		cancel()
		synctest.Wait()
		end()
		if !begun || never {
			t.Errorf("begun %v, never %v", begun, never)
		}
	})
}

// slowDrain takes its time to drain.
type slowDrain struct {
	models
	drained bool
}

func (s *slowDrain) Drain() {
	time.Sleep(time.Second)
	s.models.Drain()
	s.drained = true
}

// TestRunWaitsForDrain: every drain is over when Run returns.
func TestRunWaitsForDrain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &slowDrain{models: models{width: 3, fail: func(*llm.Request) error { return &llm.Error{Kind: llm.KindAuth} }}}
		if res, err := Run(t.Context(), config(m, &journal.Memory{}, 3)); err != nil || res.State != journal.Stopped || !m.drained {
			t.Errorf("drained %v: %+v, %v", m.drained, res, err)
		}
	})
}

// TestAgenda: every episode is taken once, in order, and a stage begins when the previous one has
// ended.
func TestAgenda(t *testing.T) {
	t.Parallel()
	plan, o := stages{3, 2}, world.Outcome{Data: json.RawMessage("{}")}
	j := &journal.Memory{}
	if err := j.Append(t.Context(), &journal.Ended{Episode: 1, Outcome: o}); err != nil {
		t.Fatal(err)
	}
	head, err := j.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	a := newAgenda(world.Define(crowd()), &plan, nil, head, func(from, to int, each func(*journal.Ended) error) error {
		return head.Ended.Outcomes(t.Context(), j, from, to, each)
	})
	var got []string
	for {
		st, recorded, err := a.advance()
		if err != nil || recorded {
			t.Fatal(recorded, err)
		}
		if st == nil {
			break
		}
		got = append(got, fmt.Sprintf("stage %d from %d", st.Stage, st.First))
		for a.more() {
			next, ok, err := a.take()
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, fmt.Sprint(next.number, ok))
			if a.done() {
				t.Errorf("the stage is done before episode %d has ended", next.number)
			}
			if ok {
				a.count(&journal.Ended{Episode: next.number, Outcome: o}, nil)
			}
		}
		if !a.done() {
			t.Error("the stage is not done though all its episodes have ended")
		}
	}
	if want := []string{"stage 0 from 0", "0 true", "1 false", "2 true", "stage 1 from 3", "3 true", "4 true"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestReplay: an episode gets what is recorded of its last attempt, once, and in order.
func TestReplay(t *testing.T) {
	t.Parallel()
	j := &journal.Memory{}
	at := func(episode, attempt int) journal.Turn { return journal.Turn{Episode: episode, Attempt: attempt} }
	for _, e := range []journal.Entry{
		&journal.Turned{Turn: at(1, 0), Calls: 1}, &journal.Replied{Turn: at(1, 0), Response: &llm.Response{Text: "given up"}},
		&journal.Turned{Turn: at(3, 0), Calls: 1}, &journal.Turned{Turn: at(1, 1), Calls: 2},
		&journal.Replied{Turn: at(1, 1), Index: 1, Response: &llm.Response{Text: "kept"}}, &journal.Ended{Episode: 2},
	} {
		if err := j.Append(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	head, err := j.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p := newReplay(j, head.Playing, false)
	done := make(chan struct{})
	go func() { p.run(t.Context()); close(done) }()
	one, err := p.take(t.Context(), 1)
	if err != nil || len(one.first) != 1 {
		t.Fatalf("%+v, %v", one, err)
	}
	if turn := one.take(at(1, 1)); turn.calls != 2 || turn.has(0) || !turn.has(1) || turn.replies[1].reply.Text != "kept" || one.take(at(1, 1)) != nil {
		t.Errorf("%+v, and then %+v", turn, one)
	}
	if three, err := p.take(t.Context(), 3); err != nil || !three.take(at(3, 0)).turned() {
		t.Errorf("%+v, %v", three, err)
	}
	<-done
	for _, n := range []int{1, 2, 3} {
		if rec, err := p.take(t.Context(), n); err == nil {
			t.Errorf("episode %d: %v a second time, or though it has ended", n, rec)
		}
	}
}

// pausing is a journal that stops reading after so many entries until it may continue.
type pausing struct {
	*journal.Memory
	after     int
	continues chan struct{}
}

func (p *pausing) Read(ctx context.Context, in journal.Span, each func(journal.Entry) error) error {
	n := 0
	return p.Memory.Read(ctx, in, func(e journal.Entry) error {
		if n++; n == p.after {
			<-p.continues
		}
		return each(e)
	})
}

// TestReplayBegins: an episode continues while the journal is still read.
func TestReplayBegins(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := &pausing{&journal.Memory{}, giveSize + 1, make(chan struct{})}
		at := func(episode, turn int) journal.Turn { return journal.Turn{Episode: episode, Turn: turn} }
		for turn := range giveSize {
			if err := j.Append(t.Context(), &journal.Turned{Turn: at(0, turn), Calls: 1}); err != nil {
				t.Fatal(err)
			}
		}
		if err := j.Append(t.Context(), &journal.Turned{Turn: at(1, 0), Calls: 1}); err != nil {
			t.Fatal(err)
		}
		p := newReplay(j, map[int]journal.Progress{0: {Entries: giveSize}, 1: {Entries: 1}}, false)
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		var wg sync.WaitGroup
		wg.Go(func() {
			if rec, err := p.take(ctx, 0); err != nil || len(rec.first) != giveSize {
				t.Errorf("%v, %v", rec, err)
			}
			close(j.continues)
		})
		synctest.Wait() // somebody waits
		wg.Go(func() { p.run(t.Context()) })
		<-j.continues
		if rec, err := p.take(t.Context(), 1); err != nil || len(rec.first) != 1 {
			t.Errorf("%v, %v", rec, err)
		}
		wg.Wait()
	})
}

// TestRecorded: turns of each strand are taken once, whatever their order in the journal, and those
// before a turn that was taken are not needed any more.
func TestRecorded(t *testing.T) {
	t.Parallel()
	at := func(strand string, turn int) journal.Turn { return journal.Turn{Strand: strand, Turn: turn} }
	var rec recorded
	for i, turn := range []int{4, 0, 7, 2, 7, 4} {
		rec.at(at("", turn)).calls = turn
		rec.at(at("0.1/", turn)).calls = 10*turn + i
	}
	for _, tt := range []struct {
		at   journal.Turn
		want int // calls; -1: there is none
	}{
		{at("", 2), 2}, {at("", 2), -1}, {at("", 0), -1}, {at("", 3), -1}, {at("", 7), 7}, {at("", 8), -1}, {at("", 4), -1},
		{at("0.1/", 0), 1}, {at("0.1/", 4), 45}, {at("0.1/", 5), -1}, {at("0.1/", 7), 74}, {at("0.2/", 0), -1},
	} {
		got := -1
		if turn := rec.take(tt.at); turn != nil {
			got = turn.calls
		}
		if got != tt.want {
			t.Errorf("%+v: %d, want %d", tt.at, got, tt.want)
		}
	}
}

// TestReplayIndex: a call number that no turn can have is an error.
func TestReplayIndex(t *testing.T) {
	t.Parallel()
	for _, index := range []int{math.MinInt, -1, maxIndex + 1, math.MaxInt} {
		j := &journal.Memory{}
		if err := j.Append(t.Context(), &journal.Replied{Index: index}); err != nil {
			t.Fatal(err)
		}
		p := newReplay(j, map[int]journal.Progress{0: {Entries: 1}}, false)
		if _, err := p.readPart(t.Context(), []int{0}); !errors.Is(err, journal.ErrDamaged) {
			t.Errorf("call %d: %v", index, err)
		}
	}
}

// TestBudgetMovesMoney plays random forks: what the strands have left and what was charged always
// add up, and some strand can continue until the first has ended.
func TestBudgetMovesMoney(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		const all = 1000
		root := &strand{budget: budget{left: all}}
		strands, runs, charged := []*strand{root}, []*strand{root}, llm.Money(0)
		for range 1000 {
			if len(runs) == 0 {
				t.Fatalf("seed %d: everybody waits", seed)
			}
			i := r.IntN(len(runs))
			s := runs[i]
			if s == root && (root.exhausted || r.IntN(20) == 0) {
				break
			}
			switch r.IntN(4) {
			case 0: // a call
				cost := min(s.left, llm.Money(r.IntN(60)))
				s.left -= cost
				charged += cost
				continue
			case 1: // a fork
				forks := make([]*strand, 1+r.IntN(3))
				for n := range forks {
					forks[n] = &strand{parent: s, number: n}
				}
				s.missing = len(forks)
				s.divide(forks)
				strands, runs = append(strands, forks...), append(slices.Delete(runs, i, i+1), forks...)
			case 2: // it is done, as the scheduler has it
				if s == root {
					continue
				}
				runs = slices.Delete(runs, i, i+1)
				s.parent.left += s.left
				s.left = 0
				if next := s.parent.arrive(); next != nil {
					runs = append(runs, next)
				}
			case 3:
				runs = slices.Delete(runs, i, i+1)
				if next := s.block(); next != nil {
					runs = append(runs, next)
				}
			}
			sum := charged
			for _, s := range strands {
				sum += s.left
			}
			if sum != all {
				t.Fatalf("seed %d: %v of %v", seed, sum, llm.Money(all))
			}
		}
	}
}
