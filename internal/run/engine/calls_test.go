package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/journal"
	"parley/llm"
	"parley/world"
)

// people answers depending on the question. It is late for those that late chooses, and thinks for a time.
type people struct {
	models
	late  func(Question) bool
	think func(Question) time.Duration
	gone  chan struct{} // closed by Drain

	count sync.Mutex
	open  map[string]int // how often each question was asked
}

func newPeople() *people { return &people{gone: make(chan struct{}), open: map[string]int{}} }

func (p *people) Drain() { close(p.gone) }

func (p *people) Ask(ctx context.Context, q Question) (*llm.Response, error) {
	p.count.Lock()
	p.open[fmt.Sprint(q.Turn, q.Index)]++
	p.count.Unlock()
	var wait time.Duration
	if p.think != nil {
		wait = p.think(q)
	}
	select {
	case <-time.After(wait):
	case <-p.gone:
		return nil, &llm.Error{Kind: llm.KindCanceled, Message: "draining"}
	case <-ctx.Done():
		return nil, llm.ContextError(ctx)
	}
	if p.late != nil && p.late(q) {
		return nil, &llm.Error{Kind: llm.KindTimeout, Message: "too late"}
	}
	r, err := p.answer(ctx, q.Request)
	if r != nil {
		r.Metadata.Cost = 0
	}
	return r, err
}

// seated is the config of the crowd with a person in one of its seats.
func seated(p *people, j journal.Journal, fallback string, sizes ...int) Config {
	c := config(&models{width: 4}, j, sizes...)
	c.Begun.Agents[0] = world.Agent{Name: "alice", Model: world.Human, Deadline: time.Minute, Fallback: fallback}
	c.People = p
	return c
}

// unpriced is a list of prices without one for people.
type unpriced struct{ list }

func (l unpriced) Worst(req *llm.Request) (llm.Money, error) {
	if req.Model == world.Human {
		return 0, errors.New("a person has no price")
	}
	return l.list.Worst(req)
}

func (l unpriced) List(req *llm.Request, u llm.Usage) llm.Money {
	if req.Model == world.Human {
		return 0
	}
	return l.list.List(req, u)
}

// oddTurn chooses some questions, the same in every process.
func oddTurn(q Question) bool { return (q.Turn.Episode+q.Turn.Turn)%2 == 1 }

// TestPerson: a run with a person has the same outcomes wherever it was cut off, whether the person, the fallback or
// nobody answers, and no question that has an answer is asked again.
func TestPerson(t *testing.T) {
	t.Parallel()
	for _, fallback := range []string{"", "bob"} {
		for _, late := range []func(Question) bool{nil, oddTurn} {
			for _, budget := range []llm.Money{0, middle * unit} {
				j := &journal.Memory{}
				setUp := func(p *people, j journal.Journal) Config {
					p.late = late
					c := seated(p, j, fallback, 4, 2)
					if budget > 0 {
						c.Models.(*models).price = tries
						c.Settings.EpisodeBudget, c.Prices = budget, unpriced{}
					}
					return c
				}
				want, err := Run(t.Context(), setUp(newPeople(), j))
				if err != nil || want.State != journal.Complete {
					t.Fatalf("%+v, %v", want, err)
				}
				checkAnswers(t, j, fallback, late != nil)
				entries := 0
				if err := j.Read(t.Context(), journal.Whole(), func(journal.Entry) error { entries++; return nil }); err != nil {
					t.Fatal(err)
				}
				for cut := 2; cut < entries; cut += 5 * stride() {
					cj := &cutJournal{left: cut}
					if _, err := Run(t.Context(), setUp(newPeople(), cj)); !errors.Is(err, errCut) {
						t.Fatal(cut, err)
					}
					cj.left = 1 << 30
					answered := replies(t, cj)
					p := newPeople()
					got, err := Run(t.Context(), setUp(p, cj))
					if err != nil || got.Digest != want.Digest {
						t.Errorf("fallback %q, cut after %d: %+v, %v; want digest %s", fallback, cut, got, err, want.Digest)
					}
					for q, n := range p.open {
						if answered[q] || n > 1 {
							t.Errorf("question %s has an answer and was asked again", q)
						}
					}
				}
			}
		}
	}
}

// replies returns the calls with a reply.
func replies(t *testing.T, j journal.Journal) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	if err := j.Read(t.Context(), journal.Whole(), func(e journal.Entry) error {
		if r, ok := e.(*journal.Replied); ok {
			all[fmt.Sprint(r.Turn, r.Index)] = true
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

// checkAnswers checks that the journal says who answered for the person.
func checkAnswers(t *testing.T, j journal.Journal, fallback string, some bool) {
	t.Helper()
	by := map[string]int{}
	if err := j.Read(t.Context(), journal.Whole(), func(e journal.Entry) error {
		if r, ok := e.(*journal.Replied); ok && r.Agent == "alice" {
			who := r.Request.Model
			if r.Error != nil {
				who = string(r.Error.Kind)
			} else if r.Request.Model == world.Human && r.Cost() != 0 {
				t.Errorf("a person costs %v", r.Cost())
			}
			by[who]++
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if by[world.Human] == 0 || (by["lab/b"] > 0) != (some && fallback != "") || (by["timeout"] > 0) != (some && fallback == "") {
		t.Errorf("fallback %q: the answers are by %v", fallback, by)
	}
}

// TestPersonWaits: a question that is open delays only its own episode, whatever the limits, and an interrupted run
// asks it again.
func TestPersonWaits(t *testing.T) {
	t.Parallel()
	j := &journal.Memory{}
	synctest.Test(t, func(t *testing.T) {
		p := newPeople()
		p.think = func(q Question) time.Duration {
			if q.Turn.Episode == 0 {
				return 1000 * time.Hour
			}
			return 0
		}
		drain, stop := context.WithCancelCause(t.Context())
		c := seated(p, j, "", 30)
		c.Settings.Limits.Concurrency, c.Drain = 1, drain
		ended := 0
		c.Watch = func(e Event) {
			if e.Ended != nil {
				if ended++; ended == 29 {
					stop(errors.New("enough"))
				}
			}
		}
		res, err := Run(t.Context(), c)
		if err != nil || res.State != journal.Stopped || res.Ended != 29 || res.Made.FailedCalls != 0 {
			t.Errorf("%+v, %v", res, err)
		}
		p = newPeople()
		res, err = Run(t.Context(), seated(p, j, "", 30))
		if err != nil || res.State != journal.Complete || res.Ended != 30 || len(p.open) == 0 {
			t.Errorf("%+v, %v", res, err)
		}
	})
}

// TestNobodyToAsk: a run that cannot ask people says so and can be resumed.
func TestNobodyToAsk(t *testing.T) {
	t.Parallel()
	c := seated(nil, &journal.Memory{}, "", 2)
	c.People = nil
	if res, err := Run(t.Context(), c); err == nil || res.State != journal.Failed || res.Ended != 0 {
		t.Errorf("%+v, %v", res, err)
	}
}

// outside carries out acts, each in a second. It has room for some episodes; the others wait until
// the run stops.
type outside struct {
	room    int // 0: any number
	fail    error
	stopped chan struct{}
	once    sync.Once

	mu         sync.Mutex
	open, peak int
}

func newOutside() *outside { return &outside{stopped: make(chan struct{})} }

func (o *outside) Drain() { o.once.Do(func() { close(o.stopped) }) }

func (o *outside) Act(ctx context.Context, _ journal.Turn, _ int, _ string, act world.Act) (*llm.Response, error) {
	if act.Name == "open" && !o.enter() {
		select {
		case <-o.stopped:
			return nil, &llm.Error{Kind: llm.KindCanceled, Message: "no room"}
		case <-ctx.Done():
			return nil, llm.ContextError(ctx)
		}
	}
	time.Sleep(time.Second) // of the bubble's clock
	if act.Name == "close" {
		o.mu.Lock()
		o.open--
		o.mu.Unlock()
	}
	return &llm.Response{}, o.fail
}

func (o *outside) enter() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.room > 0 && o.open == o.room {
		return false
	}
	o.open++
	o.peak = max(o.peak, o.open)
	return true
}

// abroad is a run whose episodes open something outside, ask, and close it.
func abroad(m Models, o *outside, j journal.Journal, episodes int) Config {
	c := config(m, j, episodes)
	c.Actor = o
	act := func(name string) world.Call { return world.Call{Seat: "a", Act: &world.Act{Name: name}} }
	k := crowd()
	k.Play = func(_ *turns, t *world.Table) world.Outcome {
		t.One(act("open"))
		for range 3 {
			t.One(world.Call{Seat: "a", Ask: llm.Request{Messages: []llm.Message{llm.User("?")}}})
		}
		t.One(act("close"))
		return world.Outcome{}
	}
	c.Kind = world.Define(external{k})
	return c
}

// TestFewAreOpenOutside: episodes that begin with an act begin no faster than those that begin with
// an ask.
func TestFewAreOpenOutside(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ calls, width, limit int }{{4, 4, 40}, {100, 100, 250}, {0, 4, 300}} {
		synctest.Test(t, func(t *testing.T) {
			o := newOutside()
			c := abroad(&models{width: tt.width, pause: 10 * time.Second}, o, &journal.Memory{}, 600)
			c.Settings.Limits.Concurrency = tt.calls
			if res, err := Run(t.Context(), c); err != nil || res.State != journal.Complete || o.peak > tt.limit || o.peak < tt.width {
				t.Errorf("%d calls at once: %d were open; %+v, %v", tt.calls, o.peak, res, err)
			}
		})
	}
}

// TestRoomOutside: an actor that says how many episodes it has room for gets so many, and more when its room grows.
func TestRoomOutside(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ calls, first, grown, peak int }{{0, 2, 2, 2}, {0, 2, 400, 400}, {8, 400, 400, 40}} {
		synctest.Test(t, func(t *testing.T) {
			o := newOutside()
			c := abroad(&models{width: 600, pause: time.Minute}, o, &journal.Memory{}, 600)
			began := time.Now()
			c.Settings.Limits.Concurrency, c.Capacity = tt.calls, func() int {
				if time.Since(began) > time.Minute {
					return tt.grown
				}
				return tt.first
			}
			res, err := Run(t.Context(), c)
			if err != nil || res.State != journal.Complete || o.peak > tt.peak || o.peak < tt.peak/4 {
				t.Errorf("%+v: %d were open; %+v, %v", tt, o.peak, res, err)
			}
			if tt.calls == 0 && o.peak != tt.peak {
				t.Errorf("%+v: %d were open", tt, o.peak)
			}
		})
	}
}

// TestDrainLeavesWhatWaits: on a drain, episodes that have begun outside are played to their end.
// Those that still wait are left at once, for the next process.
func TestDrainLeavesWhatWaits(t *testing.T) {
	t.Parallel()
	for _, room := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			j, o := &journal.Memory{}, newOutside()
			o.room = room
			c := abroad(&models{width: 8, pause: time.Minute}, o, j, 10)
			drain, cancel := context.WithTimeoutCause(t.Context(), 1500*time.Millisecond, errors.New("enough"))
			defer cancel()
			c.Drain = drain
			closing := 0
			c.Watch = func(e Event) { closing += e.Closing }
			res, err := Run(t.Context(), c)
			if err != nil || res.State != journal.Stopped || res.Reason != (journal.Reason{Kind: journal.ByUser, Detail: "enough"}) || res.Ended != room || closing != room || res.Made.Calls != 3*room || res.Made.Acts != 2*room {
				t.Fatalf("room for %d, %d reported as playing to their end: %+v, %v", room, closing, res, err)
			}
			res, err = Run(t.Context(), abroad(&models{width: 8}, newOutside(), j, 10))
			if err != nil || res.State != journal.Complete || res.Ended != 10 || res.Made.Calls != 3*(10-room) || res.Made.Acts != 2*(10-room) {
				t.Errorf("resumed: %+v, %v", res, err)
			}
		})
	}
}

// TestFailedActsCount: every recorded failure is counted, those of asks and of acts apart.
func TestFailedActsCount(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOutside()
		o.fail = &llm.Error{Kind: llm.KindServer, Status: 500, Message: "oh"}
		m := &models{width: 4, fail: func(*llm.Request) error { return &llm.Error{Kind: llm.KindServer, Status: 500} }}
		if res, err := Run(t.Context(), abroad(m, o, &journal.Memory{}, 6)); err != nil || res.Made.FailedCalls != 6*3 || res.Made.FailedActs != 6*2 {
			t.Errorf("%+v, %v", res, err)
		}
	})
}

// waiting is an outside whose acts wait until it is drained.
type waiting struct {
	began, drained chan struct{}
	first, second  sync.Once
}

func (w *waiting) Drain() { w.second.Do(func() { close(w.drained) }) }

func (w *waiting) Act(context.Context, journal.Turn, int, string, world.Act) (*llm.Response, error) {
	w.first.Do(func() { close(w.began) })
	<-w.drained
	return nil, &llm.Error{Kind: llm.KindCanceled, Message: "no room"}
}

// TestGivenUpBesideAStrand: an act is canceled while another strand of its episode is played. The
// race detector checks that both may look at the episode.
func TestGivenUpBesideAStrand(t *testing.T) {
	t.Parallel()
	c := config(&models{width: 4}, &journal.Memory{}, 8)
	o := &waiting{began: make(chan struct{}), drained: make(chan struct{})}
	c.Actor = o
	k := crowd()
	k.Play = func(_ *turns, t *world.Table) world.Outcome {
		t.Fork(2, func(i int, t *world.Table) {
			if i == 0 {
				t.One(world.Call{Seat: "a", Act: &world.Act{Name: "wait"}})
				return
			}
			for range 2000 {
				t.One(world.Call{Seat: "bot", Label: "w", Ask: llm.Request{Messages: []llm.Message{llm.User("x")}}})
			}
		})
		return world.Outcome{}
	}
	c.Kind = world.Define(external{k})
	drain, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	c.Drain = drain
	go func() {
		<-o.began
		stop(errors.New("enough"))
	}()
	if res, err := Run(t.Context(), c); err != nil || res.State != journal.Stopped {
		t.Errorf("%+v, %v", res, err)
	}
}

// TestActsOfWorlds: an act that a world brings has one key, also if it is carried out again because its process was killed, and the
// world is told what it raised, also when it is played again.
func TestActsOfWorlds(t *testing.T) {
	t.Parallel()
	const episodes = 3
	runs := map[string]int{} // by key
	var mu sync.Mutex
	play := func(j journal.Journal) (Result, error) {
		c := config(&models{width: 1}, j, episodes)
		c.Begun.Run = "r1"
		do := func(_ context.Context, key string) (json.RawMessage, error) {
			mu.Lock()
			defer mu.Unlock()
			runs[key]++
			return nil, &world.CodeError{Text: "w.py:3: ValueError: no", Trace: "Traceback"}
		}
		k := crowd()
		k.Play = func(_ *turns, t *world.Table) world.Outcome {
			said := ""
			for range 2 {
				for _, r := range t.Ask(world.Call{Seat: "a", Act: &world.Act{Name: "f", Do: do}}, world.Call{Seat: "a", Act: &world.Act{Name: "g", Do: do}}) {
					said += string(r.Failed) + " " + r.Why + "; "
				}
			}
			t.One(world.Call{Seat: "a", Ask: llm.Request{Messages: []llm.Message{llm.User("?")}}})
			return world.Outcome{Data: said}
		}
		c.Kind = world.Define(k)
		return Run(t.Context(), c)
	}
	for left := range 40 {
		j := &cutJournal{left: left}
		_, _ = play(j)
		if res, err := play(&j.Memory); err != nil || res.State != journal.Complete {
			t.Fatalf("cut after %d: %+v, %v", left, res, err)
		}
		head, _ := j.Memory.Head(t.Context()) // Memory never fails
		for e := range head.Ended.All() {
			ended, err := head.Ended.Outcome(t.Context(), &j.Memory, e.Episode)
			if err != nil {
				t.Fatal(err)
			}
			const once = "raised w.py:3: ValueError: no; "
			if want := fmt.Sprintf("%q", once+once+once+once); fmt.Sprintf("%s", ended.Outcome.Data) != want {
				t.Errorf("cut after %d: the world was told %s, want %s", left, ended.Outcome.Data, want)
			}
		}
	}
	if len(runs) != 4*episodes || runs["r1.2.0.1.0"] == 0 {
		t.Errorf("the keys are %v: want one for each of %d acts", runs, 4*episodes)
	}
}

// TestVersion: a call is sent to the version of its model that the run wants, and recorded and digested as it was asked.
func TestVersion(t *testing.T) {
	t.Parallel()
	j, m := &journal.Memory{}, &models{width: 4}
	m.fail = func(req *llm.Request) error {
		if req.Model == "lab/a" {
			t.Errorf("%s was asked", req.Model)
		}
		return nil
	}
	c := config(m, j, 3)
	c.Version = func(model string, of world.Spec) string {
		if model == "lab/a" {
			return fmt.Sprintf("lab/a@v%d", of.Deal)
		}
		return model
	}
	if res, err := Run(t.Context(), c); err != nil || res.State != journal.Complete {
		t.Fatalf("%+v, %v", res, err)
	}
	asked := 0
	err := j.Read(t.Context(), journal.Whole(), func(e journal.Entry) error {
		if r, ok := e.(*journal.Replied); ok && r.Agent == "alice" && r.Request != nil {
			asked++
			if r.Request.Model != "lab/a" {
				t.Errorf("a call was recorded as of %s", r.Request.Model)
			}
		}
		return nil
	})
	if err != nil || asked == 0 {
		t.Error(asked, err)
	}
}
