package cluster

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"parley/internal/run/cluster/hub"
	"parley/internal/run/cluster/lease"
	"parley/internal/run/cluster/tally"
	"parley/internal/run/engine"
	"parley/journal"
)

// Player plays lots of one run.
type Player interface {
	// Play plays a lot into j. needEpisodes is called when another lot could be played too. When drain is done, it begins
	// nothing new.
	Play(ctx, drain context.Context, j journal.Journal, lot engine.Lot, needEpisodes func()) (engine.Result, error)
	// Hold sends no more calls, or sends them again.
	Hold(on bool)
	// Drain refuses the calls of all lots that wait.
	Drain()
	// Close releases everything. No lot is played any more.
	Close(ctx context.Context) error
}

// Opened is a run that a worker can play.
type Opened struct {
	Player Player
	// Full, if set, reports whether the worker has all that it can play for now. Then it takes no more lots: others may have
	// room for them.
	Full func() bool
	// Calls, if set, returns what the calls of the run are so far.
	Calls func() tally.Report
	// BeforeActs, if set, gets what the first act of the run waits for. Calls says from then on that more may be in flight.
	BeforeActs func(tell func())
	// Limits are what is shared with other workers. Nil: nothing is.
	Limits lease.Limits
	// Money is the worker's part of the budget. Nil: there is no budget.
	Money *lease.MoneyMember
}

// Worker plays lots for the coordinators of a hub. It joins every run of its own build that it may see, and leaves it when the run
// ends. It plays a lot only while nobody else has claimed it, and records everything before a world sees it. When it is told to
// drain, by a signal or by an operator, it begins nothing, records what is in flight, and gives its lots back.
type Worker struct {
	// Conn is a connection to the hub.
	Conn *nats.Conn
	// Build identifies the program. Runs of another build are refused.
	Build string
	// Run is the only run to play. Default: all that there are.
	Run string
	// Open prepares to play the run that began so. session names the worker in the run.
	Open func(ctx context.Context, session string, begun *journal.Begun) (Opened, error)
	// Log gets what happens.
	Log *slog.Logger
}

const (
	maxLots     = 256              // played at once
	nameSize    = 8                // letters of the name of a worker
	maxRuns     = 256              // played at once
	rejoinAfter = 10 * time.Second // after which a run that could not be joined is tried again
)

// errLeft is why a worker does not play a run any more.
var errLeft = errors.New("worker: the run has ended, or has another log")

// Serve plays lots until drain is done and everything is recorded, or until ctx is done.
func (w *Worker) Serve(ctx, drain context.Context) error {
	js, err := jetstream.New(w.Conn)
	if err != nil {
		return fmt.Errorf("worker: %w", err)
	}
	s := &serving{Worker: *w, js: js, name: rand.Text()[:nameSize], runs: map[string]*member{}, beats: make(chan hub.Beating, 64)}
	run := w.Run
	if run == "" {
		run = "*"
	}
	sub, err := w.Conn.Subscribe(hub.BeatSubject(run), func(m *nats.Msg) {
		var b hub.Beating
		if json.Unmarshal(m.Data, &b) == nil && m.Subject == hub.BeatSubject(b.Run) {
			select {
			case s.beats <- b:
			default: // the next one comes soon
			}
		}
	})
	if err != nil {
		return fmt.Errorf("worker: %w", err)
	}
	defer func() { _ = sub.Unsubscribe() }()
	drain, stop := context.WithCancelCause(drain)
	defer stop(context.Canceled)
	drainSub, err := w.Conn.Subscribe(hub.DrainSubject(s.name), func(m *nats.Msg) {
		if hub.Drains(m, s.name) {
			stop(errors.New("an operator drains the worker"))
		}
	})
	if err != nil {
		return fmt.Errorf("worker: %w", err)
	}
	defer func() { _ = drainSub.Unsubscribe() }()
	return s.loop(ctx, drain)
}

// serving is one call of Serve.
type serving struct {
	Worker
	js    jetstream.JetStream
	name  string // of this process
	beats chan hub.Beating
	runs  map[string]*member // by run
	alone sync.RWMutex       // held to read by each lot; to write, by one that may kill the process
}

// loop joins and leaves runs as their coordinators say.
func (s *serving) loop(ctx, drain context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(errLeft)
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-drain.Done():
			for _, m := range s.runs {
				m.drain(context.Cause(drain))
			}
			s.finish()
			return nil
		case b := <-s.beats:
			s.beat(ctx, &wg, b)
		}
	}
}

// finish waits until no run is played any more. It listens to the coordinators until then: lots may wait until what they
// recorded is taken.
func (s *serving) finish() {
	for _, m := range s.runs {
		for !m.over() {
			select {
			case <-m.done:
			case b := <-s.beats:
				if of := s.runs[b.Run]; of != nil && of.name.Number == b.Log {
					of.receiveBeat(b)
				} else if of != nil {
					of.leave()
				}
			}
		}
	}
}

// beat joins a run, tells it what its coordinator says, or leaves it.
func (s *serving) beat(ctx context.Context, wg *sync.WaitGroup, b hub.Beating) {
	m := s.runs[b.Run]
	if m != nil && m.over() && (m.name.Number != b.Log || time.Since(m.began) > rejoinAfter) {
		delete(s.runs, b.Run)
		m = nil
	}
	switch {
	case m != nil && m.name.Number != b.Log:
		m.leave()
	case m != nil:
		m.receiveBeat(b)
	case b.Ended || b.Draining:
	case len(s.runs) >= maxRuns && !s.forget():
		s.report(rand.Text(), b.Run, hub.Working{Refused: fmt.Sprintf("worker: it plays %d runs at once and no more: start another", maxRuns)})
	default:
		m = newMember(ctx, s, b)
		s.runs[b.Run] = m
		wg.Go(m.serve)
	}
}

// forget forgets a run that this worker does not play any more, if there is one.
func (s *serving) forget() bool {
	for run, m := range s.runs {
		if m.over() {
			delete(s.runs, run)
			return true
		}
	}
	return false
}

// report tells the coordinator about this worker.
func (s *serving) report(session, run string, w hub.Working) {
	w.Worker, w.Session, w.Build, w.Run, w.Process = s.name, session, s.Build, run, os.Getpid()
	w.Host, _ = os.Hostname()
	if data, err := json.Marshal(w); err == nil {
		_ = s.Conn.Publish(hub.StatsSubject(run), data) // the next one may arrive
	}
}
