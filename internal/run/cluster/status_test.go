package cluster

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"parley/internal/ask/dispatch/limiter"
	"parley/internal/run/cluster/clustertest"
	"parley/internal/run/cluster/hub"
	"parley/internal/run/cluster/share"
)

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
	l.hearOut(t.Context(), time.Millisecond)
	if n, _, err := stats.Pending(); n == 0 || err != nil {
		t.Errorf("%d reports are open; %v", n, err)
	}
	close(over)
	l.hearOut(t.Context(), time.Hour)
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
	l.reportLimits(name, share.Report{Worker: "w", Accounts: map[string]share.Need{"lab": {Demand: limiter.Demand{Waiting: 3, Rates: limiter.Units{Requests: 60}}}}})
	x := l.take(name)
	s := status(func(s Status) bool { return s.Lots.Leased == 1 && s.Lots.Waiting > 0 }) // the next lot may be cut later
	if a := s.Accounts["lab"]; s.Run != name.Run || s.Lots.Done != 0 || a.Shares["w"] != 1 || a.Waiting != 3 || a.Rates.Requests != 60 {
		t.Errorf("%+v", s)
	}
	if err := l.end(x); err != nil {
		t.Fatal(err)
	}
	_ = x.msg.Ack()
	status(func(s Status) bool { return s.Lots.Leased == 0 && s.Lots.Done == 1 })
	l.finish()
}

// reportLimits sends a report of limits until it is answered.
func (l *lab) reportLimits(name hub.Log, r share.Report) {
	l.Helper()
	for began := time.Now(); ; {
		r.Seq++
		data, err := json.Marshal(r)
		if err == nil {
			_, err = l.conn.RequestMsg(name.Ask(hub.LimitsSubject(name.Run), data), share.Interval)
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
	old, err := json.Marshal(share.Report{Worker: "old", Seq: 7, Epoch: 9, Number: 3})
	if err != nil {
		t.Fatal(err)
	}
	before := hub.Log{Run: name.Run, Number: name.Number + 1}
	if err := l.conn.PublishMsg(before.Ask(hub.LimitsSubject(name.Run), old)); err != nil {
		t.Fatal(err)
	}
	l.reportLimits(name, share.Report{Worker: "w", Accounts: map[string]share.Need{"lab": {Demand: limiter.Demand{Waiting: 1}}}})
	l.finish()
}
