package coordinator

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/nats-io/nats.go"

	"parley/internal/cluster/hub"
	"parley/internal/cluster/share"
	"parley/internal/cluster/subject"
	"parley/internal/dispatch/limiter"
)

// TestStatus: who asks is told which lots wait, are played and are done, and how limits are divided.
func TestStatus(t *testing.T) {
	t.Parallel()
	l := newLab(t, hub.Config{})
	l.play()
	name := l.name()
	status := l.status(name)
	for r := (share.Report{Worker: "w", Accounts: map[string]share.Need{"lab": {Demand: limiter.Demand{Waiting: 3, Rates: limiter.Units{Requests: 60}}}}}); ; {
		r.Seq++
		report, err := json.Marshal(r)
		if err == nil {
			_, err = l.conn.Request(subject.Limits(name.Run), report, share.Interval)
		}
		if err == nil {
			break
		}
		if t.Context().Err() != nil || !errors.Is(err, nats.ErrTimeout) { // a slow keeper answers the next one
			t.Fatal(err)
		}
	}
	x := l.take(name)
	s := status(func(s Status) bool { return s.Lots.Leased == 1 })
	if a := s.Accounts["lab"]; s.Run != name.Run || s.Lots.Waiting == 0 || s.Lots.Done != 0 || a.Shares["w"] != 1 || a.Waiting != 3 || a.Rates.Requests != 60 {
		t.Errorf("%+v", s)
	}
	if err := l.end(x); err != nil {
		t.Fatal(err)
	}
	_ = x.msg.Ack()
	status(func(s Status) bool { return s.Lots.Leased == 0 && s.Lots.Done == 1 })
	l.finish()
}
