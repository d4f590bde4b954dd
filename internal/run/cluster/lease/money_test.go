package lease

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/ask/dispatch/budget"
	"parley/llm"
)

func alwaysDurable(string, llm.Money) error { return nil }

// answer returns the grant of the worker that asks.
func answer(t *testing.T, k *MoneyKeeper, a MoneyReport) MoneyGrant {
	t.Helper()
	grants, err := k.Answer(a)
	if err != nil || len(grants) == 0 || grants[0].Worker != a.Worker {
		t.Fatalf("%+v: %+v, %v", a, grants, err)
	}
	return grants[0]
}

// TestRefusedLast: a worker is told that there is no more only when no other has calls in flight, or
// something to give back.
func TestRefusedLast(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := NewMoneyKeeper(MoneyConfig{Epoch: 1, Limit: 1000, Durable: alwaysDurable})
		seq := uint64(0)
		short := func() MoneyGrant {
			seq++
			return answer(t, k, MoneyReport{Header: Header{Worker: "short", Seq: seq, Epoch: 1}, Stake: budget.Stake{Short: 500, Idle: true}})
		}
		for i, other := range []struct {
			stake budget.Stake
			want  bool
		}{
			{budget.Stake{AtStake: 900}, false},                         // a call is in flight
			{budget.Stake{AtStake: 900, Spare: 700, Idle: true}, false}, // it will give back
			{budget.Stake{AtStake: 900, Idle: true}, true},
		} {
			answer(t, k, MoneyReport{Header: Header{Worker: "other", Seq: uint64(i + 1), Epoch: 1}, Given: 1000, Stake: other.stake})
			for range 3 {
				short()
				time.Sleep(Interval)
			}
			if g := short(); g.Exhausted != other.want || g.Given != 0 {
				t.Errorf("beside %+v: %+v", other.stake, g)
			}
		}
		if err := k.Leave("other"); err != nil {
			t.Fatal(err)
		}
		if g := short(); g.Given < 500 || g.Exhausted {
			t.Errorf("after the other left: %+v", g)
		}
	})
}

// TestStakeOfAnotherKeeper: what a worker says that has not heard of a keeper yet does not lower what the
// keeper knows to be durable. A grant of the keeper before may still arrive.
func TestStakeOfAnotherKeeper(t *testing.T) {
	t.Parallel()
	k := NewMoneyKeeper(MoneyConfig{Epoch: 2, Limit: 1000, Spent: 100, Exposed: map[string]llm.Money{"a": 700, "b": 100}, Durable: alwaysDurable})
	ask := MoneyReport{Header: Header{Worker: "a", Seq: 9, Epoch: 1}, Given: 700, Stake: budget.Stake{AtStake: 10, Short: 200}}
	if g := answer(t, k, ask); g.Given != 0 || k.Sums().Allotted["a"] != 700 {
		t.Errorf("%+v, %v", g, k.Sums())
	}
	ask.Seq, ask.Epoch, ask.Given = 10, 2, 0
	if g := answer(t, k, ask); g.Given < 200 || k.Sums().Allotted["a"] != 10+g.Given {
		t.Errorf("%+v, %v", g, k.Sums())
	}
	if err := k.Lost("b"); err != nil || k.Sums().AtRisk != 100 {
		t.Errorf("%v, %v", k.Sums(), err)
	}
	if g := answer(t, k, MoneyReport{Header: Header{Worker: "b", Seq: 1, Epoch: 2}}); !g.Lost || k.Sums().AtRisk != 100 || !k.IsLost("b") || k.IsLost("a") {
		t.Errorf("%+v, %v", g, k.Sums())
	}
	if err := k.Leave("b"); err != nil || k.Sums().AtRisk != 100 {
		t.Errorf("after a lost worker says that it leaves: %v, %v", k.Sums(), err)
	}
	before := k.Sums().Allotted["a"]
	if err := errors.Join(k.Settled("a"), k.Settled("b")); err != nil || k.Sums().AtRisk != 0 || k.Sums().Allotted["a"] != before {
		t.Errorf("%v %v, want no risk of b, and a unchanged", k.Sums(), err)
	}
}

// TestNotDurable: what cannot be made durable is not sent.
func TestNotDurable(t *testing.T) {
	t.Parallel()
	full := errors.New("disk full")
	k := NewMoneyKeeper(MoneyConfig{Epoch: 1, Limit: 1000, Durable: func(string, llm.Money) error { return full }})
	grants, err := k.Answer(MoneyReport{Header: Header{Worker: "a", Seq: 1}, Stake: budget.Stake{AtStake: 5}, Exposed: 5})
	if len(grants) > 0 || !errors.Is(err, full) || k.workers["a"].durable != 0 {
		t.Errorf("%+v, %v, %v", grants, err, k.Sums())
	}
}

// TestExposedIsKnown: a worker sends more only after the keeper knows of it, whatever answers are late. What a lost worker
// had beyond that is free again.
func TestExposedIsKnown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := NewMoneyKeeper(MoneyConfig{Epoch: 1, Limit: 1000, Durable: alwaysDurable})
		m := NewMoneyMember("a", 1000)
		m.Apply(answer(t, k, m.Report())) // from now on it knows the keeper
		raise := func(ctx context.Context, to llm.Money) <-chan error {
			done := make(chan error, 1)
			go func() { done <- m.expose(ctx, to) }()
			synctest.Wait()
			if len(done) > 0 {
				t.Errorf("it does not wait for %v", to)
			}
			return done
		}
		known := func(done <-chan error, want error) {
			t.Helper()
			synctest.Wait()
			select {
			case err := <-done:
				if !errors.Is(err, want) {
					t.Errorf("got %v, want %v", err, want)
				}
			default:
				t.Error("it still waits")
			}
		}
		first := raise(t.Context(), 20)
		m.Apply(MoneyGrant{Header: Header{Worker: "a", Epoch: 1, Number: 50}, Durable: 1}) // to the ask before
		synctest.Wait()
		if len(first) > 0 {
			t.Error("an old answer was taken for a new one")
		}
		k.workers["a"].number = 50
		late := answer(t, k, m.Report())
		m.Apply(answer(t, k, m.Report()))
		known(first, nil)
		if err := m.expose(t.Context(), 5); err != nil { // less needs no answer
			t.Error(err)
		}
		answer(t, k, m.Report())
		ctx, cancel := context.WithCancel(t.Context())
		second := raise(ctx, 15)
		m.Apply(late)
		cancel()
		known(second, context.Canceled)
		third := raise(t.Context(), 15)
		m.Apply(answer(t, k, MoneyReport{Header: Header{Worker: "a", Seq: 90, Epoch: 1}, Given: m.given, Stake: budget.Stake{AtStake: 300}, Exposed: 15}))
		known(third, nil)
		if err := k.Lost("a"); err != nil || k.Sums().AtRisk != 15 {
			t.Errorf("%+v, %v", k.Sums(), err)
		}
	})
}
