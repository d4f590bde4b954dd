package engine

import (
	"context"
	"errors"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/journal"
	"parley/llm"
	"parley/world"
)

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

// TestAgain plays the failed episodes of a run again, and is killed at every moment. Nothing is asked that was answered, in any attempt, and
// the outcomes are those of a run without the mistake.
func TestAgain(t *testing.T) {
	t.Parallel()
	mistaken := crowd()
	play := mistaken.Play
	mistaken.Play = func(p *turns, table *world.Table) world.Outcome {
		out := play(p, table)
		if table.Deal().Number%2 == 0 {
			out = world.Outcome{Failed: "a mistake"}
		}
		return out
	}
	first := &models{width: 3}
	was := &journal.Memory{}
	c := config(first, was, 4)
	c.Kind = world.Define(mistaken)
	if res, err := Run(t.Context(), c); err != nil || res.Failed != 2 {
		t.Fatalf("%+v, %v", res, err)
	}
	whole, err := Run(t.Context(), config(&models{width: 3}, &journal.Memory{}, 4))
	if err != nil {
		t.Fatal(err)
	}
	head, err := was.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	n, through := head.Ended.LastFailure(0)
	begun := *head.Begun
	begun.Again = []journal.Again{{Episodes: n, Through: through}}
	var entries []journal.Entry
	if err := was.Read(t.Context(), journal.Whole(), func(e journal.Entry) error { entries = append(entries, e); return nil }); err != nil {
		t.Fatal(err)
	}
	entries = append(entries, &begun)
	for cut := 0; ; cut++ {
		j := &cutJournal{left: math.MaxInt}
		if err := j.Append(t.Context(), entries...); err != nil {
			t.Fatal(err)
		}
		j.left = cut
		_, err := Run(t.Context(), config(&models{width: 3}, j, 4))
		cutOff := errors.Is(err, errCut)
		j.left = math.MaxInt
		then := &models{width: 3}
		res, err := Run(t.Context(), config(then, j, 4))
		if err != nil || res.Failed != 0 || res.Digest != whole.Digest || len(then.asked) > 0 {
			t.Fatalf("after %d entries: %+v, %v, %d calls; want the outcomes %s and no calls", cut, res, err, len(then.asked), whole.Digest)
		}
		if !cutOff {
			break
		}
	}
}
