package engine

import (
	"context"
	"errors"

	"parley/journal"
	"parley/world"
)

// Lot is successive episodes of a stage that are played together, maybe in another process.
type Lot struct {
	// Stage and First are the numbers of the stage and of the first episode.
	Stage, First int
	Specs        world.Specs
	// Nth says for each episode how many earlier ones of the run have the same cell and deal. Nil: none.
	Nth []int
	// Skip says which episodes of Specs are not played, by number. At least one is. Nil: all are.
	Skip func(episode int) bool
}

// Plan returns a plan for Config that plays the lot. Config.Lot must be set too.
func (l *Lot) Plan() world.Stages { return l.Specs }

// nth returns the Nth of the episode at index i.
func (l *Lot) nth(i int) int {
	if i >= len(l.Nth) {
		return 0
	}
	return l.Nth[i]
}

// Remote plays the episodes of a run in other processes.
type Remote interface {
	// Play gives out the lots of run, and records what others record of them. It returns when
	// run.Next has said that there are no more lots, and nobody plays one any more; or when ctx is
	// done. An error stops the run.
	Play(ctx context.Context, run *RemoteRun) error
}

// RemoteRun is a run whose episodes a Remote plays. Its methods may be used from several goroutines.
type RemoteRun struct{ run *run }

// Begun returns how the run was set up.
func (x *RemoteRun) Begun() journal.Begun { return x.run.Begun }

// Head returns what the journal held when this process began.
func (x *RemoteRun) Head() *journal.Head { return x.run.head }

// Journal returns the journal, to read.
func (x *RemoteRun) Journal() journal.Journal { return x.run.Journal }

// Next waits for the next lot of at most size episodes and returns it. Lots of small stages are smaller,
// so that there is one for every worker. The same stages are always cut in the same way, and lots whose
// episodes have all ended are left out. It returns false when there is nothing more to begin.
func (x *RemoteRun) Next(size int) (Lot, bool) { return x.run.sched.nextLot(size) }

// Record makes entries durable that others recorded, and calls after.
func (x *RemoteRun) Record(after func(error), first journal.Entry, more ...journal.Entry) {
	x.run.rec.Write(func(err error) {
		if err == nil {
			x.run.collect(first)
			for _, e := range more {
				x.run.collect(e)
			}
		}
		after(err)
	}, first, more...)
}

// Idle says that a Remote, or one of its workers, does not play.
type Idle struct {
	Worker string // such as "worker 12 on host"; empty: nobody plays, or all go on
	Why    string // empty: they go on
}

// Tell tells whoever watches the run.
func (x *RemoteRun) Tell(i Idle) { x.run.watch(Event{Idle: &i}) }

// Stop ends the run, as a worker found out that it must. err is set if it cannot continue unchanged.
func (x *RemoteRun) Stop(state journal.State, why journal.Reason, err error) {
	x.run.stop.stop(ending{state: state, reason: why, err: err})
	x.run.sched.wakeAll()
}

// Stopped reports whether the run is to end.
func (x *RemoteRun) Stopped() bool { return x.run.stop.stopped.Load() }

// CutOff returns how many calls were in flight when the last process was killed, as far as the journal tells. They are lost if the workers
// were killed too, or have lost what they recorded.
func (x *RemoteRun) CutOff() int {
	calls := x.run.Settings.Limits.Concurrency
	if n := x.run.lostBefore(); calls <= 0 || n < calls {
		return n
	}
	return calls // the others waited
}

// Drain is done when the caller wants the run to stop.
func (x *RemoteRun) Drain() context.Context { return x.run.Drain }

// Drained ends a run that is to stop, without waiting for what is in flight elsewhere.
func (x *RemoteRun) Drained() {
	x.run.stop.stop(stoppedBy(x.run.Drain))
	x.run.sched.wakeAll()
}

// Lost counts calls that a worker had in flight when it was killed. They are made again.
func (x *RemoteRun) Lost(calls int) { x.run.lost.Add(int64(max(0, calls))) }

// Held reports whether the run is paused.
func (x *RemoteRun) Held() bool {
	x.run.sched.mu.Lock()
	defer x.run.sched.mu.Unlock()
	return x.run.sched.held
}

// collect applies a durable entry of another process.
func (r *run) collect(e journal.Entry) {
	switch e := e.(type) {
	case *journal.Turned:
		if len(e.Notes) > 0 {
			r.watch(Event{Noted: e})
		}
	case *journal.Replied:
		if e.Kind() == journal.Bot {
			return // it was not asked
		}
		if e.Copied {
			r.replay.copy(e)
			return
		}
		r.sched.count(e)
		r.watch(Event{Replied: e})
	case *journal.Ended:
		line := outcomeLine(e)
		r.watch(Event{Ended: e})
		r.sched.collectEnd(e, line)
	}
}

// playRemote plays all episodes elsewhere.
func (r *run) playRemote(ctx context.Context) {
	err := r.Remote.Play(ctx, &RemoteRun{r})
	if err == nil && !r.stop.stopped.Load() {
		err = errors.New("nobody plays the run any more, and it is not complete")
	}
	if err != nil {
		r.fail(err)
	}
}

func (s *scheduler) collectEnd(e *journal.Ended, line []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.agenda.collect(e, line)
	s.wake.Broadcast()
}

// nextLot waits for the next lot.
func (s *scheduler) nextLot(size int) (Lot, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.stop.stopped.Load() {
		switch {
		case s.held || s.agenda.more() && s.agenda.number() >= s.until:
			s.wake.Wait()
		case s.agenda.more():
			lot, open, err := s.agenda.cut(size)
			if err != nil {
				s.stop.fail(err)
				return Lot{}, false
			}
			if open {
				return lot, true
			}
		case s.agenda.done():
			s.advance()
		default:
			s.wake.Wait()
		}
	}
	return Lot{}, false
}

// lotsAtLeast is into how many lots a stage is cut, if it has as many episodes.
const lotsAtLeast = 64

// cut takes the next lot of the stage. open reports whether an episode of it has not ended.
func (a *agenda) cut(size int) (lot Lot, open bool, err error) {
	size = min(size, 1+a.stage.Len()/lotsAtLeast)
	from := a.next
	to := min(a.stage.Len(), (from/size+1)*size)
	lot = Lot{Stage: a.stages - 1, First: a.first + from, Specs: a.stage.Cut(from, to)}
	for i := range to - from {
		st, ok, err := a.take()
		if err != nil {
			return lot, false, err
		}
		open = open || ok
		if n := st.draw.Nth; n > 0 {
			if lot.Nth == nil {
				lot.Nth = make([]int, to-from)
			}
			lot.Nth[i] = n
		}
	}
	return lot, open, nil
}

// early is the end of an episode that others played before it was taken: after a restart, the log of a
// cluster may be ahead of the plan.
type early struct {
	ended *journal.Ended
	line  []byte
}

// collect counts an episode that ended elsewhere, now or when it is taken.
func (a *agenda) collect(e *journal.Ended, line []byte) {
	if e.Episode >= a.first+a.next {
		if a.early == nil {
			a.early = map[int]early{}
		}
		a.early[e.Episode] = early{e, line}
		return
	}
	a.count(e, line)
}
