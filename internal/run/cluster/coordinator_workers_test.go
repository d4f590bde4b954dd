package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"parley/internal/ask/dispatch"
	"parley/internal/ask/dispatch/budget"
	"parley/internal/ask/dispatch/limiter"
	"parley/internal/run/cluster/clustertest"
	"parley/internal/run/cluster/hub"
	"parley/internal/run/cluster/lease"
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

// TestRisk: what a lost worker may have spent is at risk, unless its lots are all done, and so is that of one that says so. One that
// leaves has recorded everything.
func TestRisk(t *testing.T) {
	t.Parallel()
	l := newLab(t, hub.Config{})
	l.budget = 1000 * llm.Dollar
	l.play()
	name := l.name()
	status := l.status(name)
	for session, exposed := range map[string]llm.Money{"done": 3 * llm.Dollar, "playing": 5 * llm.Dollar, "owes": 7 * llm.Dollar, "left": 11 * llm.Dollar} {
		l.session = session
		x := l.take(name)
		ask, err := json.Marshal(lease.MoneyReport{Header: lease.Header{Worker: session, Seq: 1}, Stake: budget.Stake{AtStake: exposed}, Exposed: exposed})
		if err == nil {
			_, err = l.conn.RequestMsgWithContext(t.Context(), name.Ask(hub.LeaseSubject(name.Run, hub.Money), ask))
		}
		if err == nil && session == "done" {
			err = l.end(x)
		}
		if err == nil && (session == "owes" || session == "left") {
			err = l.leave(session)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	l.session = ""
	status(func(s Status) bool { return s.Money.AtRisk == 15*llm.Dollar && len(s.Money.Allotted) == 0 })
	status(func(s Status) bool { return s.Money.AtRisk == 12*llm.Dollar })
}

// leave says that a worker ends.
func (l *lab) leave(session string) error {
	l.Helper()
	data, err := json.Marshal(hub.Working{Session: session, Run: clustertest.Run, Leaves: true, Owes: session == "owes"})
	if err != nil {
		return err
	}
	return l.conn.Publish(hub.StatsSubject(clustertest.Run), data)
}

// TestHearOut: a run ends although more reports come than can be counted.
func TestHearOut(t *testing.T) {
	t.Parallel()
	conn := clustertest.Connect(t, clustertest.Hub(t, hub.Config{}))
	over := make(chan struct{})
	stats, err := conn.Subscribe(hub.StatsSubject(clustertest.Run), func(*nats.Msg) { <-over })
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := conn.Publish(hub.StatsSubject(clustertest.Run), nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := conn.Flush(); err != nil {
		t.Fatal(err)
	}
	l := &log{play: &play{stats: stats}}
	l.drainReports(t.Context(), time.Millisecond)
	if n, _, err := stats.Pending(); n == 0 || err != nil {
		t.Errorf("%d reports are open; %v", n, err)
	}
	close(over)
	l.drainReports(t.Context(), time.Hour)
	if n, _, err := stats.Pending(); n != 0 || err != nil {
		t.Errorf("%d reports were not counted; %v", n, err)
	}
}

// TestStatus: who asks is told which lots wait, are played and are done, and how limits are divided.
func TestStatus(t *testing.T) {
	t.Parallel()
	l := newLab(t, hub.Config{})
	l.play()
	name := l.name()
	status := l.status(name)
	l.reportLimits(name, lease.LimitsReport{Header: lease.Header{Worker: "w"}, Accounts: map[string]lease.Need{"lab": {Demand: limiter.Demand{Waiting: 3, Rates: limiter.Units{Requests: 60}}}}})
	x := l.take(name)
	s := status(func(s Status) bool { return s.Lots.Leased == 1 && s.Lots.Waiting > 0 && len(s.Workers) == 1 }) // the next lot may be cut later
	if len(s.Lots.Open) != s.Lots.Leased+s.Lots.Waiting || !slices.ContainsFunc(s.Lots.Open, func(o Lot) bool {
		return o.First == x.from && o.Last == x.to-1 && o.Session == s.Workers[0].Session && o.Worker == s.Workers[0].Worker && o.Deaths == 0
	}) {
		t.Errorf("%+v, want lot %d-%d with its worker", s, x.from, x.to)
	}
	if a := s.Accounts["lab"]; s.Run != name.Run || s.Lots.Done != 0 || a.Shares["w"] != 1 || a.Waiting != 3 || a.Rates.Requests != 60 {
		t.Errorf("%+v", s)
	}
	if err := l.end(x); err != nil {
		t.Fatal(err)
	}
	_ = x.msg.Ack()
	status(func(s Status) bool { return s.Lots.Leased == 0 && s.Lots.Done == 1 })
	dead := l.take(name)
	for again := l.take(name); again.from != dead.from; again = l.take(name) { // nobody keeps it
	}
	status(func(s Status) bool {
		return slices.ContainsFunc(s.Lots.Open, func(o Lot) bool { return o.First == dead.from && o.Deaths > 0 && o.Session != "" })
	})
	l.finish()
}

// reportLimits sends a report of limits until it is answered.
func (l *lab) reportLimits(name hub.Log, r lease.LimitsReport) {
	l.Helper()
	for began := time.Now(); ; {
		r.Seq++
		data, err := json.Marshal(r)
		if err == nil {
			_, err = l.conn.RequestMsg(name.Ask(hub.LeaseSubject(name.Run, hub.Limits), data), lease.Interval)
		}
		if err == nil {
			return
		}
		if !errors.Is(err, nats.ErrTimeout) || time.Since(began) > time.Minute { // a slow keeper answers the next one
			l.Fatal(err)
		}
	}
}

// TestSessionOfAnotherLog: when the coordinator and the hub were killed together, epochs begin at 1 again. A worker that has not noticed yet
// reports a higher one, and the others must get their shares all the same.
func TestSessionOfAnotherLog(t *testing.T) {
	t.Parallel()
	l := newLab(t, hub.Config{})
	l.play()
	name := l.name()
	old, err := json.Marshal(lease.LimitsReport{Header: lease.Header{Worker: "old", Seq: 7, Epoch: 9, Number: 3}})
	if err != nil {
		t.Fatal(err)
	}
	before := hub.Log{Run: name.Run, Number: name.Number + 1}
	if err := l.conn.PublishMsg(before.Ask(hub.LeaseSubject(name.Run, hub.Limits), old)); err != nil {
		t.Fatal(err)
	}
	l.reportLimits(name, lease.LimitsReport{Header: lease.Header{Worker: "w"}, Accounts: map[string]lease.Need{"lab": {Demand: limiter.Demand{Waiting: 1}}}})
	l.finish()
}
