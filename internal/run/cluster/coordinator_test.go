package cluster

import (
	"errors"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"parley/internal/run/cluster/chain"
	"parley/internal/run/cluster/hub"
	"parley/internal/run/engine"
	"parley/journal"
)

// TestSlow: a lot whose worker gives no sign of life is given to another. The first one can write nothing any more.
func TestSlow(t *testing.T) {
	t.Parallel()
	l := newLab(t, hub.Config{})
	l.play()
	name := l.name()
	slow := l.take(name)
	if err := slow.play(t.Context(), slow.from); err != nil {
		t.Fatal(err)
	}
	for {
		x := l.take(name)
		if err := l.end(x); err != nil {
			t.Fatal(err)
		}
		_ = x.msg.Ack()
		if x.from == slow.from {
			break
		}
	}
	if err := l.end(slow); !errors.Is(err, journal.ErrFenced) {
		t.Errorf("the slow worker: %v, want it fenced", err)
	}
	l.finish()
}

// TestDiskFull: the run stops and says why. When there is room, it continues, with what workers recorded meanwhile.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	l := newLab(t, hub.Config{})
	l.play()
	name := l.name()
	l.fillDisk(name)
	l.play()
	if got := l.name(); got != name {
		t.Errorf("the log is %+v, want %+v: what is in it must be collected", got, name)
	}
	l.finish()
}

// TestHubLost: when the hub has lost everything, a new log begins with what the journal has. Nobody can write to the old one.
func TestHubLost(t *testing.T) {
	t.Parallel()
	l := newLab(t, hub.Config{})
	l.play()
	name := l.name()
	done, half := l.take(name), l.take(name)
	if err := l.end(done); err != nil {
		t.Fatal(err)
	}
	if err := half.play(t.Context(), half.from); err != nil {
		t.Fatal(err)
	}
	l.status(name)(func(s Status) bool { return s.Ended == done.to-done.from+1 })
	for _, stream := range []string{name.Lots(), name.Stream()} {
		if err := l.js.DeleteStream(t.Context(), stream); err != nil {
			t.Fatal(err)
		}
	}
	again := hub.Log{Run: "toy1", Number: l.beat(func(b hub.Beating) bool { return b.Log != name.Number }).Log}
	if err := l.end(half); !errors.Is(err, journal.ErrFenced) {
		t.Errorf("a worker with the old log: %v, want it fenced", err)
	}
	if got := l.name(); got != again {
		t.Errorf("%+v, want %+v", got, again)
	}
	l.finish()
}

// TestQueueLost: when only the queue is gone, it is made again, and the log continues.
func TestQueueLost(t *testing.T) {
	t.Parallel()
	l := newLab(t, hub.Config{})
	l.play()
	name := l.name()
	l.status(name)(func(s Status) bool { return len(s.Lots.Open) == episodes/2 }) // every lot was put into it
	if err := l.js.DeleteStream(t.Context(), name.Lots()); err != nil {
		t.Fatal(err)
	}
	for {
		_, err := l.js.Stream(t.Context(), name.Lots())
		if err == nil {
			break
		}
		if !errors.Is(err, jetstream.ErrStreamNotFound) {
			t.Fatal(err)
		}
		l.beat(func(hub.Beating) bool { return true })
	}
	if got := l.name(); got != name {
		t.Errorf("the log is %+v, want %+v", got, name)
	}
	l.finish()
}

// TestMessageLost: when the hub has lost a message of a chain, a new log begins with what the journal has.
func TestMessageLost(t *testing.T) {
	t.Parallel()
	l := newLab(t, hub.Config{})
	l.play()
	name := l.name()
	x := l.take(name)
	l.abort()
	<-l.done
	stream, err := l.js.Stream(t.Context(), name.Stream())
	if err != nil {
		t.Fatal(err)
	}
	if err := x.play(t.Context(), x.from); err != nil {
		t.Fatal(err)
	}
	last, err := stream.GetLastMsgForSubject(t.Context(), name.Chain(x.from, x.to))
	if err == nil {
		err = errors.Join(x.play(t.Context(), x.from+1), stream.DeleteMsg(t.Context(), last.Sequence))
	}
	if err != nil {
		t.Fatal(err)
	}
	l.play()
	l.beat(func(b hub.Beating) bool { return b.Log != name.Number && !b.Ended })
	l.finish()
}

// TestHubFull: while the hub has no room, everybody waits and says so. Then the run continues.
func TestHubFull(t *testing.T) {
	t.Parallel()
	const room = 1 << 20
	l := newLab(t, hub.Config{MaxMemory: room})
	filler, err := l.js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "FILLER", Subjects: []string{"filler"}, Storage: jetstream.MemoryStorage})
	if err != nil {
		t.Fatal(err)
	}
	fill := func() {
		for err = error(nil); err == nil; {
			_, err = l.js.Publish(t.Context(), "filler", make([]byte, room/64))
		}
		if api := (*jetstream.APIError)(nil); !errors.As(err, &api) {
			t.Fatal(err)
		}
	}
	coordinator, worker := make(chan bool, 100), make(chan bool, 100)
	l.idle = func(i engine.Idle) { coordinator <- i.Why != "" }
	l.chains = &chain.Room{Tell: func(full error) { worker <- full != nil }}
	again := func(said <-chan bool) {
		if full := <-said; !full {
			t.Error("nobody says that the hub is full")
		}
		if err := filler.Purge(t.Context()); err != nil {
			t.Fatal(err)
		}
		if full := <-said; full {
			t.Error("nobody says that the hub has room again")
		}
	}
	fill()
	l.play()
	again(coordinator)
	name := l.name()
	x := l.take(name)
	fill()
	ended := make(chan error)
	go func() { ended <- l.end(x) }()
	again(worker)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	_ = x.msg.Ack()
	l.finish()
}

// TestPause: workers are told that the run is paused, resumed and drained.
func TestPause(t *testing.T) {
	t.Parallel()
	l := newLab(t, hub.Config{})
	l.play()
	name := l.name()
	for _, paused := range []bool{true, false} {
		l.steer.Hold(paused)
		l.beat(func(b hub.Beating) bool { return b.Paused == paused })
	}
	x := l.take(name)
	if err := x.play(t.Context(), x.from); err != nil {
		t.Fatal(err)
	}
	l.steer.Finish("drained")
	l.beat(func(b hub.Beating) bool { return b.Draining })
	if err := x.Put(t.Context(), &chain.Released{}); err != nil {
		t.Fatal(err)
	}
	l.beat(func(b hub.Beating) bool { return b.Ended })
	if res := <-l.done; res.State != journal.Stopped || res.Ended != 1 || l.err != nil {
		t.Errorf("%+v %v, want it stopped, with what was played", res, l.err)
	}
	if _, err := l.js.Stream(t.Context(), name.Stream()); !errors.Is(err, jetstream.ErrStreamNotFound) {
		t.Errorf("the log: %v, want it removed", err)
	}
	l.play()
	l.finish()
}

// TestForged: entries that cannot be of a lot stop the run before they are recorded. It can be resumed.
func TestForged(t *testing.T) {
	t.Parallel()
	for what, forge := range map[string]func(x *lot) journal.Entry{
		"another lot's episode": func(x *lot) journal.Entry { return &journal.Ended{Episode: x.to} },
		"no episode":            func(*lot) journal.Entry { return &journal.Ended{Episode: -1} },
		"a second end":          func(x *lot) journal.Entry { return &journal.Ended{Episode: x.from} },
		"an entry of the run":   func(*lot) journal.Entry { return &journal.Closed{State: journal.Complete} },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, hub.Config{})
			l.play()
			x := l.take(l.name())
			if err := l.end(x); err != nil {
				t.Fatal(err)
			}
			if err := x.Append(t.Context(), forge(x)); err != nil {
				t.Fatal(err)
			}
			if res := <-l.done; !errors.Is(l.err, errBroken) {
				t.Fatalf("%+v %v, want an error", res, l.err)
			}
			l.play()
			l.finish()
		})
	}
}

// TestRebuild: a journal that is lost begins again from a log that kept everything, and from no other.
func TestRebuild(t *testing.T) {
	t.Parallel()
	for _, retain := range []bool{true, false} {
		l := newLab(t, hub.Config{})
		l.retain = retain
		l.play()
		name := l.name()
		done, half := l.take(name), l.take(name)
		if err := errors.Join(l.end(done), half.play(t.Context(), half.from)); err != nil {
			t.Fatal(err)
		}
		l.status(name)(func(s Status) bool { return s.Ended == done.to-done.from+1 })
		l.abort()
		<-l.done
		l.journal = &disk{ended: map[int]int{}}
		err := Rebuild(t.Context(), l.conn, "toy1", l.journal)
		if !retain {
			if err == nil {
				t.Error("a log that has not everything was taken")
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if runs, err := Logs(t.Context(), l.conn); err != nil || len(runs) != 1 || runs[0] != "toy1" {
			t.Errorf("%v %v, want the run", runs, err)
		}
		l.play()
		l.finish()
		if err := Rebuild(t.Context(), l.conn, "toy1", l.journal); err == nil {
			t.Error("a run that is over was taken")
		}
	}
}

// TestAloneBetween: what a process without workers plays is not played by the next one with workers, whatever an old log has.
func TestAloneBetween(t *testing.T) {
	t.Parallel()
	l := newLab(t, hub.Config{})
	l.play()
	name := l.name()
	l.fillDisk(name)
	if res, err := engine.Run(t.Context(), l.config()); err != nil || res.State != journal.Complete {
		t.Fatal(res, err)
	}
	l.play()
	l.complete()
}

// TestTaken: of two coordinators that play copies of a run file on one hub, the first ends and says why. The other plays the run to its end.
func TestTaken(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"the copy is older than the log", "the copy has the same log"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, hub.Config{})
			l.play()
			x := l.take(l.name())
			if err := l.end(x); err != nil {
				t.Fatal(err)
			}
			_ = x.msg.Ack()
			l.status(l.name())(func(s Status) bool { return s.Ended == x.to-x.from })
			other := *l
			other.journal = &disk{ended: map[int]int{}}
			if strings.HasSuffix(name, "same log") {
				err := l.journal.Read(t.Context(), journal.Whole(), func(e journal.Entry) error { return other.journal.Append(t.Context(), e) })
				if err != nil {
					t.Fatal(err)
				}
			}
			other.play()
			if res := <-l.done; !errors.Is(l.err, errTaken) {
				t.Errorf("%+v %v, want it to say that another took the run", res, l.err)
			}
			other.finish()
		})
	}
}
