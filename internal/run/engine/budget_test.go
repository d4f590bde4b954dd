package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/journal"
	"parley/journal/journaltest"
	"parley/llm"
	"parley/world"
)

// An attempt costs up to maxTryCost, and a call makes up to three.
const (
	unit       = llm.Dollar / 1000
	maxTryCost = 30 * unit
)

// middle is a budget that is enough for some episodes.
const middle = 1000

// tries charges for attempts until one succeeds or the next might cost more than the call may.
func tries(req *llm.Request, n uint64) (cost llm.Money, err error) {
	for range 1 + n%3 {
		if req.MaxCost > 0 && cost+maxTryCost > req.MaxCost {
			return cost, llm.ErrMaxCost
		}
		cost += unit * llm.Money(5+n%25)
		n /= 3
	}
	return cost, nil
}

func frugal(m *models, j journal.Journal, budget llm.Money, sizes ...int) Config {
	m.price = tries
	c := config(m, j, sizes...)
	c.Settings.EpisodeBudget = budget
	c.Prices = list{}
	return c
}

// list returns the cost of an attempt, and of an answer by its tokens, or err.
type list struct{ err error }

func (l list) Worst(*llm.Request) (llm.Money, error)      { return maxTryCost, l.err }
func (l list) List(_ *llm.Request, u llm.Usage) llm.Money { return llm.Money(u.Output) }

// bills are the cost, the calls and the tokens of each episode.
func bills(t *testing.T, j journal.Journal) (cost map[int]llm.Money, calls map[int][2]int) {
	t.Helper()
	cost, calls = map[int]llm.Money{}, map[int][2]int{}
	if err := j.Read(t.Context(), journal.Whole(), func(e journal.Entry) error {
		if r, ok := e.(*journal.Replied); ok && r.Request != nil {
			cost[r.Episode] += r.Cost()
			was := calls[r.Episode]
			calls[r.Episode] = [2]int{was[0] + 1, was[1] + billOf(r).output}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return cost, calls
}

// TestEpisodeBudget: no episode costs more than it may. Those that would stop, at the same call at
// any concurrency and pace.
func TestEpisodeBudget(t *testing.T) {
	t.Parallel()
	for _, budget := range []llm.Money{1, 40, 150, 400, 700, middle, 5000} {
		one := &journal.Memory{}
		want, err := Run(t.Context(), frugal(&models{width: 1}, one, budget*unit, 20, 10))
		if err != nil || want.State != journal.Complete {
			t.Fatalf("%+v, %v", want, err)
		}
		wantCost, wantCalls := bills(t, one)
		for n, c := range wantCost {
			if c > budget*unit {
				t.Errorf("budget %d: episode %d cost %v", budget, n, c)
			}
		}
		if all := budget == 1; all && want.Made.Calls > 0 || all && want.Failed != 30 || budget == 5000 && want.Failed > 0 || budget == middle && (want.Failed == 0 || want.Failed == 30) {
			t.Errorf("budget %d: %+v", budget, want)
		}
		for _, p := range []pace{{width: 3}, {width: 64}, {width: 1000, wave: true}} {
			t.Run(fmt.Sprintf("%d %+v", budget, p), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					j := &journal.Memory{}
					m := &models{width: p.width, pause: time.Second}
					c := frugal(m, j, budget*unit, 20, 10)
					if c.Settings.Pace = paceOf(p.wave); p.wave {
						c.Batches = m
					}
					got, err := Run(t.Context(), c)
					_, calls := bills(t, j)
					if err != nil || got.Digest != want.Digest || fmt.Sprint(calls) != fmt.Sprint(wantCalls) {
						t.Errorf("%+v, %v; want %+v\ncalls %v\nwant  %v", got, err, want, calls, wantCalls)
					}
				})
			})
		}
	}
}

// TestEpisodeBudgetCutAnywhere kills a run at every entry. Resumed, its episodes stop at the same
// calls.
func TestEpisodeBudgetCutAnywhere(t *testing.T) {
	t.Parallel()
	whole := &journal.Memory{}
	want, err := Run(t.Context(), frugal(&models{width: 1}, whole, middle*unit, 4))
	if err != nil || want.Failed == 0 || want.Failed == 4 {
		t.Fatalf("%+v, %v", want, err)
	}
	_, wantCalls := bills(t, whole)
	entries := 0
	_ = whole.Read(t.Context(), journal.Whole(), func(journal.Entry) error { entries++; return nil })
	for cut := range entries {
		synctest.Test(t, func(t *testing.T) {
			j := &cutJournal{left: cut}
			if _, err := Run(t.Context(), frugal(&models{width: 4, pause: time.Second}, j, middle*unit, 4)); !errors.Is(err, errCut) {
				return // it needs fewer commits than there were entries
			}
			got, err := Run(t.Context(), frugal(&models{width: 9, pause: time.Second}, &j.Memory, middle*unit, 4))
			_, calls := bills(t, &j.Memory)
			if err != nil || got.Digest != want.Digest || fmt.Sprint(calls) != fmt.Sprint(wantCalls) {
				t.Fatalf("cut after %d entries: %+v, %v; want %+v\n%v\n%v", cut, got, err, want, calls, wantCalls)
			}
		})
	}
}

// TestEpisodeBudgetSays: an episode that was stopped says why, and keeps its notes.
func TestEpisodeBudgetSays(t *testing.T) {
	t.Parallel()
	for budget, says := range map[llm.Money]string{
		100: "is left, and word of a in turn ",
		400: "is left, and word of b in turn 4.",
	} {
		j := &journal.Memory{}
		if _, err := Run(t.Context(), frugal(&models{width: 9}, j, budget*unit, 60)); err != nil {
			t.Fatal(err)
		}
		found := ""
		for _, e := range journaltest.Ends(t, j) {
			if strings.Contains(e.Outcome.Failed, says) && strings.HasPrefix(e.Outcome.Failed, "budget: an episode may cost") && strings.Contains(e.Outcome.Failed, "max_tokens") {
				found = e.Outcome.Failed
			}
		}
		if found == "" {
			t.Errorf("budget %v: no episode says %q: %+v", budget, says, journaltest.Ends(t, j)[0].Outcome)
		}
	}
	j := &journal.Memory{}
	c := frugal(&models{width: 1}, j, 60*unit, 1)
	c.Kind = playing(func(t *world.Table) world.Outcome {
		ask := world.Call{Seat: "a", Ask: llm.Request{Messages: []llm.Message{llm.User("?")}}}
		t.One(ask)
		t.Note("last", "", "words")
		t.Ask(ask, ask)
		return world.Outcome{}
	})
	if _, err := Run(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	kept := false
	_ = j.Read(t.Context(), journal.Whole(), func(e journal.Entry) error {
		turned, ok := e.(*journal.Turned)
		kept = kept || ok && len(turned.Notes) == 1 && turned.Notes[0].Kind == "last" && turned.Calls == 2
		return nil
	})
	if !kept {
		t.Error("what was noted before the call that did not fit is lost")
	}
	c.Journal = &journal.Memory{}
	c.Prices = list{errors.New("no price is known")}
	plan := stages{1}
	c.Plan = &plan
	if got, err := Run(t.Context(), c); err == nil || got.State != journal.Failed || !strings.Contains(err.Error(), "no price is known") {
		t.Errorf("%+v, %v", got, err)
	}
}

// keeper is an actor that holds something for each episode.
type keeper struct{ left chan int }

func (keeper) Act(context.Context, journal.Turn, int, string, world.Act) (*llm.Response, error) {
	return &llm.Response{}, nil
}

func (k keeper) ReleaseEpisode(_ context.Context, episode int) { k.left <- episode }

// TestLeave: the actor is notified of episodes that a budget or a panic ends, and of no others.
func TestLeave(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]int{"budget": 3, "panic": 3, "well": 0} {
		c := frugal(&models{width: 1}, &journal.Memory{}, 35*unit, 3)
		c.Kind = playing(func(t *world.Table) world.Outcome {
			ask := world.Call{Seat: "a", Ask: llm.Request{Messages: []llm.Message{llm.User("?")}}}
			t.One(world.Call{Seat: "a", Act: &world.Act{Name: "open"}})
			switch name {
			case "budget":
				t.One(ask)
				t.One(ask)
				t.One(ask)
			case "panic":
				panic("oh")
			}
			return world.Outcome{}
		})
		k := keeper{make(chan int, 9)}
		c.Actor = k
		if res, err := Run(t.Context(), c); err != nil || res.Failed != want || len(k.left) != want {
			t.Errorf("%s: %d were left, want %d: %+v, %v", name, len(k.left), want, res, err)
		}
	}
	c := frugal(&models{width: 1}, &journal.Memory{}, unit, 1)
	c.Prices = nil
	if _, err := Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), "no prices") {
		t.Error(err)
	}
}

// TestBudgetMovesMoney plays random forks: what the strands have left and what was charged always
// add up, and some strand can continue until the first has ended.
func TestBudgetMovesMoney(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		const all = 1000
		root := &strand{budget: budget{left: all}}
		strands, runs, charged := []*strand{root}, []*strand{root}, llm.Money(0)
		for range 1000 {
			if len(runs) == 0 {
				t.Fatalf("seed %d: everybody waits", seed)
			}
			i := r.IntN(len(runs))
			s := runs[i]
			if s == root && (root.exhausted || r.IntN(20) == 0) {
				break
			}
			switch r.IntN(4) {
			case 0: // a call
				cost := min(s.left, llm.Money(r.IntN(60)))
				s.left -= cost
				charged += cost
				continue
			case 1: // a fork
				forks := make([]*strand, 1+r.IntN(3))
				for n := range forks {
					forks[n] = &strand{parent: s, number: n}
				}
				s.missing = len(forks)
				s.divide(forks)
				strands, runs = append(strands, forks...), append(slices.Delete(runs, i, i+1), forks...)
			case 2: // it is done, as the scheduler has it
				if s == root {
					continue
				}
				runs = slices.Delete(runs, i, i+1)
				s.parent.left += s.left
				s.left = 0
				if next := s.parent.arrive(); next != nil {
					runs = append(runs, next)
				}
			case 3:
				runs = slices.Delete(runs, i, i+1)
				if next := s.block(); next != nil {
					runs = append(runs, next)
				}
			}
			sum := charged
			for _, s := range strands {
				sum += s.left
			}
			if sum != all {
				t.Fatalf("seed %d: %v of %v", seed, sum, llm.Money(all))
			}
		}
	}
}
