package cluster

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"parley/internal/ask/dispatch"
	"parley/internal/run/cluster/clustertest"
	"parley/internal/run/cluster/hub"
	"parley/internal/run/cluster/tally"
	"parley/internal/run/engine"
	"parley/journal"
	"parley/llm"
)

// scripted plays lots as a test says.
type scripted func(ctx context.Context, j journal.Journal, lot engine.Lot) (engine.Result, error)

func (f scripted) Play(ctx, _ context.Context, j journal.Journal, lot engine.Lot, _ func()) (engine.Result, error) {
	return f(ctx, j, lot)
}
func (scripted) Hold(bool)                   {}
func (scripted) Drain()                      {}
func (scripted) Close(context.Context) error { return nil }

// TestLostCalls: calls that a worker had in flight when it died are counted, and not those that only waited.
func TestLostCalls(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		calls func() tally.Report
		want  int
	}{
		"no report":                  {nil, 2},
		"all of them":                {inFlight(5, false), 2},
		"one waited":                 {inFlight(1, false), 1},
		"all waited":                 {inFlight(0, false), 0},
		"acts, which nobody reports": {inFlight(0, true), 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lostCalls(t, Opened{Calls: c.calls}, func() {}, c.want)
		})
	}
}

// TestLostFirstAct: a worker that dies in its first act, before its next report, has told that it acts.
func TestLostFirstAct(t *testing.T) {
	t.Parallel()
	var acts atomic.Bool
	tell := func() {}
	o := Opened{
		Calls:      func() tally.Report { return tally.Report{Partial: acts.Load()} },
		BeforeActs: func(f func()) { tell = f }, // of the first worker: the second joins later, and acts nothing
	}
	lostCalls(t, o, func() {
		acts.Store(true)
		tell()
	}, 2)
}

// inFlight reports so many calls in flight.
func inFlight(n int64, more bool) func() tally.Report {
	return func() tally.Report {
		return tally.Report{Partial: more, Snapshot: dispatch.Snapshot{InFlight: n}} // nothing has ended
	}
}

// lostCalls plays a lot with a worker that dies at two open calls, after act, and with another.
func lostCalls(t *testing.T, o Opened, act func(), want int) {
	t.Helper()
	h := clustertest.Hub(t, hub.Config{})
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancelCause(t.Context())
	join := func(play func(nc *nats.Conn) scripted) {
		wg.Go(func() {
			nc, err := nats.Connect(h.URL(), nats.Token(h.Token()))
			if err != nil {
				t.Error(err)
				return
			}
			defer nc.Close()
			w := Worker{Conn: nc, Build: "build", Log: slog.New(slog.DiscardHandler)}
			w.Open = func(context.Context, string, *journal.Begun) (Opened, error) {
				o := o
				o.Player = play(nc)
				return o, nil
			}
			_ = w.Serve(ctx, context.Background())
		})
	}
	second := func(*nats.Conn) scripted {
		return func(ctx context.Context, j journal.Journal, lot engine.Lot) (engine.Result, error) {
			for i := range lot.Specs.Len() {
				if err := j.Append(ctx, &journal.Ended{Episode: lot.First + i}); err != nil {
					return engine.Result{}, err
				}
			}
			return engine.Result{State: journal.Complete}, nil
		}
	}
	join(func(nc *nats.Conn) scripted {
		return func(ctx context.Context, j journal.Journal, lot engine.Lot) (engine.Result, error) {
			at := journal.Turn{Episode: lot.First}
			_ = nc.FlushTimeout(time.Minute) // the first report has arrived
			err := j.Append(ctx, &journal.Turned{Turn: at, Calls: 3}, &journal.Replied{Turn: at, Response: &llm.Response{Text: "one"}})
			act()
			nc.Close() // it dies
			join(second)
			return engine.Result{}, err
		}
	})
	res, _ := run(t, h, 1, nil)
	cancel(errors.New("done"))
	wg.Wait()
	if res.State != journal.Complete || res.Ended != 1 || res.Lost != want {
		t.Errorf("%+v, want %d lost calls", res, want)
	}
}
