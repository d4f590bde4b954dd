package engine

import (
	"context"
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
						c.EpisodeBudget, c.Prices = budget, unpriced{}
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
				for cut := 2; cut < entries; cut += 5 {
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
		c.Calls, c.Drain = 1, drain
		ended := 0
		c.Watch = func(e Event) {
			if e.Ended != nil {
				if ended++; ended == 29 {
					stop(errors.New("enough"))
				}
			}
		}
		res, err := Run(t.Context(), c)
		if err != nil || res.State != journal.Stopped || res.Ended != 29 || res.FailedCalls != 0 {
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
