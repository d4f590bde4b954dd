package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"parley/journal"
	"parley/llm"
	"parley/world"
)

// programs is an Answerer whose program makes calls.
type programs struct {
	calls  int
	cost   llm.Money
	within *Within
	fail   func(at journal.Turn, call int) error // before a call is made
	hold   chan struct{}                         // if set, a call waits for it
	atOnce bool                                  // all calls are made at once

	mu       sync.Mutex
	made     int // calls that were made, not repeated
	refused  int
	canceled int
	aside    llm.Money // the most that calls in flight can cost
	highest  llm.Money // that aside was
	inFlight int
	peak     int
	left     []llm.Money // the most that each call could cost
}

func (p *programs) Drain() {}

func (p *programs) Ask(ctx context.Context, q Question) (*llm.Response, error) {
	a, err := p.within.Ask(q.Turn, q.Index)
	if err != nil {
		return nil, err
	}
	past, err := a.Past(ctx)
	if err != nil {
		return nil, err
	}
	known := map[int]string{}
	for _, e := range past {
		if r, ok := e.(*journal.Replied); ok {
			known[r.Turn.Turn] = r.Response.Text
		}
	}
	if p.atOnce {
		var all sync.WaitGroup
		for i := range p.calls {
			all.Go(func() {
				_, err := p.call(ctx, a, q, i)
				p.note(err)
			})
		}
		all.Wait()
		return &llm.Response{Text: "all", Finish: llm.FinishStop}, nil
	}
	text := ""
	for i := range p.calls {
		if was, ok := known[i]; ok {
			a.Repeated()
			text += was
			continue
		}
		if p.fail != nil {
			if err := p.fail(q.Turn, i); err != nil {
				return nil, err
			}
		}
		said, err := p.call(ctx, a, q, i)
		if p.note(err); err != nil {
			break
		}
		text += said
	}
	return &llm.Response{Text: text, Finish: llm.FinishStop}, nil
}

// note counts a call that was refused.
func (p *programs) note(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case errors.Is(err, llm.ErrMaxCost):
		p.refused++
	case err != nil:
		p.canceled++
	}
}

func (p *programs) call(ctx context.Context, a *Asked, q Question, i int) (string, error) {
	req := &llm.Request{Model: q.Model, Messages: []llm.Message{llm.User(fmt.Sprint(i))}}
	end, err := a.Begin(ctx, req)
	if err != nil {
		return "", err
	}
	defer end()
	p.mu.Lock()
	p.made++
	p.inFlight++
	p.peak = max(p.peak, p.inFlight)
	p.left = append(p.left, req.MaxCost)
	p.aside += req.MaxCost
	p.highest = max(p.highest, p.aside)
	p.mu.Unlock()
	if p.hold != nil {
		<-p.hold
	}
	text := fmt.Sprintf("%d.", (q.Turn.Episode*7+q.Turn.Turn*3+i)%10)
	err = a.Keep(i, journal.Digest{1, byte(i)}, nil, &journal.Replied{
		Label: "chat", Request: req, Response: &llm.Response{Text: text, Usage: llm.Usage{Output: int(p.cost)}, Metadata: llm.Metadata{Cost: p.cost}},
	})
	p.mu.Lock()
	p.inFlight--
	p.aside -= req.MaxCost
	p.mu.Unlock()
	return text, err
}

// working is a run in which alice is a program.
func working(p *programs, j journal.Journal, sizes ...int) Config {
	c := config(&models{width: 4}, j, sizes...)
	c.Begun.Agents[0].Program = &world.Program{Command: []string{"alice"}}
	c.Programs, c.Steer = p, func(s *Steering) { p.within = s.Within() }
	return c
}

// TestProgramCallsAreOfTheEpisode wants calls of programs to be recorded, and the digest of a run not to depend on them.
func TestProgramCallsAreOfTheEpisode(t *testing.T) {
	t.Parallel()
	j := &journal.Memory{}
	p := &programs{calls: 3, cost: 5}
	res, err := Run(t.Context(), working(p, j, 4))
	if err != nil || res.State != journal.Complete {
		t.Fatal(res, err)
	}
	inner, outer := 0, 0
	err = j.Read(t.Context(), journal.Whole(), func(e journal.Entry) error {
		r, ok := e.(*journal.Replied)
		if !ok {
			return nil
		}
		if !journal.OfProgram(r.Strand) {
			outer++
			return nil
		}
		inner++
		if r.Seat != "a" || r.Agent != "alice" || r.Cost() != 5 {
			t.Errorf("call %+v", r)
		}
		return nil
	})
	if err != nil || inner != p.made || inner == 0 || outer == 0 {
		t.Errorf("%d calls are recorded of %d, beside %d: %v", inner, p.made, outer, err)
	}
	// The same without their record.
	bare := &journal.Memory{}
	if err := j.Read(t.Context(), journal.Whole(), func(e journal.Entry) error {
		switch e := e.(type) {
		case *journal.Turned:
			if journal.OfProgram(e.Strand) {
				return nil
			}
		case *journal.Replied:
			if journal.OfProgram(e.Strand) {
				return nil
			}
		}
		return bare.Append(t.Context(), e)
	}); err != nil {
		t.Fatal(err)
	}
	again, err := Run(t.Context(), working(&programs{}, bare, 4))
	if err != nil || again.Digest != res.Digest {
		t.Errorf("digest %s, and %s without the calls of programs: %v", res.Digest, again.Digest, err)
	}
}

// TestProgramCallsCutAnywhere cuts a run after every number of entries and resumes it: the outcome is the same, and no recorded
// call is made again.
func TestProgramCallsCutAnywhere(t *testing.T) {
	t.Parallel()
	for _, budget := range []llm.Money{0, 3000} {
		make := func(p *programs, j journal.Journal) Config {
			c := working(p, j, 2)
			if budget > 0 {
				c.Settings.EpisodeBudget, c.Prices = budget*unit, list{}
			}
			return c
		}
		whole, p := &journal.Memory{}, &programs{calls: 3, cost: 100 * unit}
		want, err := Run(t.Context(), make(p, whole))
		if err != nil || want.State != journal.Complete {
			t.Fatal(want, err)
		}
		all := p.made
		if budget > 0 && p.refused == 0 {
			t.Error("the budget refused nothing")
		}
		for cut := 3; ; cut++ {
			j := &cutJournal{left: cut}
			first := &programs{calls: 3, cost: 100 * unit}
			if _, err := Run(t.Context(), make(first, j)); err == nil {
				break
			}
			kept := 0
			err := j.Read(t.Context(), journal.Whole(), func(e journal.Entry) error {
				if r, ok := e.(*journal.Replied); ok && journal.OfProgram(r.Strand) {
					kept++
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			j.left = 1 << 30
			second := &programs{calls: 3, cost: 100 * unit}
			res, err := Run(t.Context(), make(second, j))
			if err != nil || res.Digest != want.Digest {
				t.Fatalf("budget %v, cut after %d: %+v, want %s: %v", budget, cut, res, want.Digest, err)
			}
			if second.made != all-kept {
				t.Errorf("budget %v, cut after %d: %d calls are recorded, and %d of %d were made", budget, cut, kept, second.made, all)
			}
		}
	}
}

// TestProgramCallsAreLimited wants calls of programs to count against limits.concurrency, and to wait while the run is paused.
func TestProgramCallsAreLimited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &programs{calls: 2, hold: make(chan struct{})}
		c := working(p, &journal.Memory{}, 8)
		c.Settings.Limits.Concurrency = 3
		var steer *Steering
		c.Steer = func(s *Steering) { steer, p.within = s, s.Within() }
		over := make(chan struct{})
		go func() {
			defer close(over)
			if res, err := Run(t.Context(), c); err != nil || res.State != journal.Complete {
				t.Error(res, err)
			}
		}()
		synctest.Wait()
		if p.inFlight != 3 {
			t.Errorf("%d calls are in flight", p.inFlight)
		}
		steer.Hold(true)
		for range 3 {
			p.hold <- struct{}{}
		}
		synctest.Wait()
		if p.inFlight != 0 {
			t.Errorf("%d calls are in flight while the run is paused", p.inFlight)
		}
		steer.Hold(false)
		close(p.hold)
		<-over
		if p.peak > 3 {
			t.Errorf("%d calls were in flight", p.peak)
		}
	})
}

// TestProgramCallsWaitForEachOther gives a program that makes eight calls at once room for two at a time: a call waits for those in flight, and
// one is refused only if there is no room for it when none is in flight. Calls that wait end when the run is stopped.
func TestProgramCallsWaitForEachOther(t *testing.T) {
	t.Parallel()
	const room = 3*maxTryCost + 8*unit // a call takes a part of what is left for further attempts
	for name, c := range map[string]struct {
		budget             llm.Money
		cost               llm.Money // of a call
		stop               bool
		made, refused      int
		canceled, together int
	}{
		"room for two at a time": {budget: room, cost: unit, made: 8, together: 2},
		"room for some":          {budget: room, cost: 20 * unit, made: 4, refused: 4, together: 2},
		"room for none":          {budget: maxTryCost - 1, refused: 8},
		"stopped":                {budget: room, cost: unit, stop: true, made: 2, canceled: 6, together: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := &programs{calls: 8, cost: c.cost, atOnce: true, hold: make(chan struct{})}
				cfg := working(p, &journal.Memory{}, 1)
				cfg.Settings.EpisodeBudget, cfg.Prices = c.budget, list{}
				cfg.Kind = playing(func(t *world.Table) world.Outcome {
					return world.Outcome{Data: t.One(world.Call{Seat: "a", Label: "word", Ask: llm.Request{Messages: []llm.Message{llm.User("go")}}}).Text}
				})
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				over := make(chan struct{})
				go func() {
					defer close(over)
					if _, err := Run(ctx, cfg); err != nil && !c.stop {
						t.Error(err)
					}
				}()
				synctest.Wait()
				if p.inFlight != c.together {
					t.Errorf("%d calls are in flight, want %d", p.inFlight, c.together)
				}
				if c.stop {
					stop()
				}
				synctest.Wait()
				close(p.hold)
				<-over
				if p.made != c.made || p.refused != c.refused || p.canceled != c.canceled || p.peak > 2 {
					t.Errorf("%d calls made, %d refused, %d canceled, %d at once; want %+v", p.made, p.refused, p.canceled, p.peak, c)
				}
				if p.highest > c.budget {
					t.Errorf("calls in flight set aside %v of %v", p.highest, c.budget)
				}
			})
		})
	}
}

// TestProgramCallOfNobody refuses calls of questions that are not open.
func TestProgramCallOfNobody(t *testing.T) {
	t.Parallel()
	p := &programs{calls: 1}
	var kept *Asked
	p.fail = func(at journal.Turn, _ int) error {
		a, err := p.within.Ask(at, 0)
		if err != nil {
			return nil
		}
		if _, err := p.within.Ask(journal.Turn{Episode: at.Episode, Turn: at.Turn + 100}, 0); err == nil {
			t.Error("a question that was not asked is open")
		}
		p.mu.Lock()
		kept = a
		p.mu.Unlock()
		return nil
	}
	if _, err := Run(t.Context(), working(p, &journal.Memory{}, 1)); err != nil {
		t.Fatal(err)
	}
	if err := kept.Keep(7, journal.Digest{}, nil, &journal.Replied{}); err == nil {
		t.Error("a call of a question that is over was recorded")
	}
}
