package worldtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"

	"parley/llm"
	"parley/world"
)

// exercise is a kind and how it is exercised.
type exercise struct {
	Options
	kind world.Kind
}

// points is the most points of an episode at which refolds and single failures are tried.
const points = 40

// game makes a new episode, with params and world of its own.
func (e *exercise) game(deal int, lineup world.Lineup, answer answerer) (g *game, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the kind panics when a world is made: %v", p)
		}
	}()
	params, seats, err := e.params()
	if err != nil {
		return nil, err
	}
	if lineup == nil {
		lineup = e.lineup(seats)
	}
	w, err := e.kind.World(params, lineup)
	if err != nil {
		return nil, fmt.Errorf("kind.World: %w", err)
	}
	g = newGame(w, deal, seats, e.MaxCalls, answer)
	g.declared = e.kind.Measures(params)
	return g, nil
}

func (e *exercise) params() (params world.Params, seats []string, err error) {
	params = e.kind.Defaults()
	if err := strictly(e.Options.Params, params.Pointer()); err != nil {
		return params, nil, fmt.Errorf("params: %w", err)
	}
	if seats, err = e.kind.Seats(params); err != nil {
		return params, nil, fmt.Errorf("kind.Seats: %w", err)
	}
	return params, seats, nil
}

func strictly(text string, into any) error {
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

func (e *exercise) lineup(seats []string) world.Lineup {
	if e.Lineup != nil {
		return e.Lineup
	}
	l := world.Lineup{}
	for _, s := range seats {
		l[s] = world.Agent{Name: "agent of " + s, Model: "test/model"}
	}
	return l
}

// good answers a deal's calls as Options.Answer does.
func (e *exercise) good(deal int) answerer {
	return func(p place, c world.Call) world.Reply { return e.Answer(c, p.rand(deal)) }
}

// played plays a deal to its end.
func (e *exercise) played(deal int, answer answerer) (*game, error) {
	g, err := e.game(deal, nil, answer)
	if err != nil {
		return nil, err
	}
	g.play()
	if err := errors.Join(g.problems...); err != nil {
		return nil, fmt.Errorf("deal %d: %w", deal, err)
	}
	if !g.done {
		return nil, fmt.Errorf("deal %d: the episode has no end: a strand waits for nothing", deal)
	}
	return g, nil
}

// describes checks what a kind says of itself.
func (e *exercise) describes() (bad []error) {
	defer func() {
		if p := recover(); p != nil {
			bad = append(bad, fmt.Errorf("the kind panics: %v", p))
		}
	}()
	k := e.kind
	say := func(wrong bool, format string, args ...any) {
		if wrong {
			bad = append(bad, fmt.Errorf(format, args...))
		}
	}
	say(k.Doc == "" || strings.Contains(k.Doc, "\n"), "doc %q: want one line", k.Doc)
	say(k.Example == "", "no example: want a plan file with every param and a comment on it")
	if reflect.ValueOf(k.Defaults().Pointer()).IsNil() {
		return append(bad, errors.New("kind.Defaults returns nil: want new params"))
	}
	params, seats, err := e.params()
	if err != nil {
		return append(bad, err)
	}
	say(len(seats) == 0, "no seats")
	seen := map[string]bool{}
	for _, s := range seats {
		say(s == "" || seen[s], "seats %q: want different ones with names", seats)
		seen[s] = true
	}
	if err := resolves(k, params); err != nil {
		bad = append(bad, err)
	}
	return bad
}

// resolves checks that params mean the same once they are written and read, since that
// is how a run keeps them.
func resolves(k world.Kind, params world.Params) error {
	b, err := json.Marshal(params.Pointer())
	if err != nil {
		return fmt.Errorf("params are not JSON: %w", err)
	}
	again := k.Defaults().Pointer()
	if err := strictly(string(b), again); err != nil {
		return fmt.Errorf("params cannot be read back: %w", err)
	}
	c, err := json.Marshal(again)
	if err != nil || !bytes.Equal(b, c) {
		return fmt.Errorf("params are %s when they are written, and %s when read and written again (%w)", b, c, err)
	}
	return nil
}

// deals runs f for each deal.
func (e *exercise) deals(f func(deal int) error) (bad []error) {
	for deal := range e.Deals {
		if err := f(deal); err != nil {
			bad = append(bad, err)
		}
	}
	return bad
}

func (e *exercise) twice() []error {
	return e.deals(func(deal int) error {
		first, err := e.played(deal, e.good(deal))
		if err != nil {
			return err
		}
		// More than twice: the order of a small map is often the same by luck.
		for range 5 {
			again, err := e.played(deal, e.good(deal))
			if err != nil {
				return err
			}
			if err := first.same(again); err != nil {
				return fmt.Errorf("deal %d, played twice: %w", deal, err)
			}
		}
		return nil
	})
}

// beside plays two deals step by step at the same time: worlds of one kind share nothing.
func (e *exercise) beside() []error {
	return e.deals(func(deal int) error {
		alone, err := e.played(deal, e.good(deal))
		if err != nil {
			return err
		}
		one, err := e.game(deal, nil, e.good(deal))
		if err != nil {
			return err
		}
		other, err := e.game(deal+1, nil, e.good(deal+1))
		if err != nil {
			return err
		}
		for one.step() {
			other.step()
		}
		one.stop()
		other.stop()
		if err := alone.same(one); err != nil {
			return fmt.Errorf("deal %d, played beside deal %d: %w", deal, deal+1, err)
		}
		return nil
	})
}

// refolds leaves a game after each number of replies and plays it again from the start
// with what was recorded, then on.
func (e *exercise) refolds() []error {
	return e.deals(func(deal int) error {
		whole, err := e.played(deal, e.good(deal))
		if err != nil {
			return err
		}
		for _, n := range spread(whole.answered) {
			recorded := map[place]world.Reply{}
			good := e.good(deal)
			cut, err := e.game(deal, nil, func(p place, c world.Call) world.Reply {
				recorded[p] = good(p, c)
				return recorded[p]
			})
			if err != nil {
				return err
			}
			for cut.answered < n && cut.step() {
			}
			cut.stop()
			again, err := e.played(deal, func(p place, c world.Call) world.Reply {
				if r, ok := recorded[p]; ok {
					return r
				}
				return good(p, c)
			})
			if err == nil {
				err = whole.same(again)
			}
			if err != nil {
				return fmt.Errorf("deal %d, left after %d replies and refolded: %w", deal, n, err)
			}
		}
		return nil
	})
}

// interleaves resumes strands in other orders.
func (e *exercise) interleaves() []error {
	return e.deals(func(deal int) error {
		first, err := e.played(deal, e.good(deal))
		if err != nil {
			return err
		}
		chance := rand.New(rand.NewPCG(uint64(deal), 0))
		orders := []func(n int) int{func(n int) int { return n - 1 }, func(n int) int { return n / 2 }, chance.IntN, chance.IntN, chance.IntN}
		for i, pick := range orders {
			g, err := e.game(deal, nil, e.good(deal))
			if err != nil {
				return err
			}
			g.pick = pick
			g.play()
			if err := errors.Join(errors.Join(g.problems...), first.same(g)); err != nil {
				return fmt.Errorf("deal %d, strands resumed in another order (%d): %w", deal, i+1, err)
			}
		}
		return nil
	})
}

// failures lets every call fail in every way, and then each call alone.
func (e *exercise) failures() []error {
	bad := survives(e, func(k llm.Kind) string { return "every call fails: " + string(k) }, llm.Kinds(), failed)
	if len(bad) > 0 {
		return bad
	}
	return e.deals(func(deal int) error {
		whole, err := e.played(deal, e.good(deal))
		if err != nil {
			return err
		}
		for _, n := range spread(whole.answered) {
			i, good := 0, e.good(deal)
			_, err := e.played(deal, func(p place, c world.Call) world.Reply {
				if i++; i == n {
					return failed(llm.KindTimeout)
				}
				return good(p, c)
			})
			if err != nil {
				return fmt.Errorf("only call %d fails: %w", n, err)
			}
		}
		return nil
	})
}

// nonsense replies with what is no answer, always, and then now and then.
func (e *exercise) nonsense() []error {
	return survives(e, func(n reply) string { return "replies are " + n.name }, nonsense(), func(n reply) world.Reply { return n.reply })
}

func (e *exercise) bots() []error {
	for name, bot := range e.kind.Bots() {
		_, seats, err := e.params()
		if err != nil {
			return []error{err}
		}
		lineup := world.Lineup{}
		for _, s := range seats {
			lineup[s] = world.Agent{Name: name, Bot: name}
		}
		var impure error
		g, err := e.game(0, lineup, func(p place, c world.Call) world.Reply {
			before := describe(c)
			a, b := bot(c), bot(c)
			if !reflect.DeepEqual(a, b) {
				impure = fmt.Errorf("%v: answers %+v and then %+v", p, a, b)
			}
			if after := describe(c); after != before {
				impure = fmt.Errorf("%v: wrote to the call: %s", p, differ(before, after))
			}
			return a
		})
		if err != nil {
			return []error{err}
		}
		g.play()
		if err := errors.Join(append(g.problems, impure)...); err != nil {
			return []error{fmt.Errorf("bot %s in every seat: %w", name, err)}
		}
	}
	return nil
}

// spread returns the numbers from 1 to n, or some of them where they are many.
func spread(n int) []int {
	var out []int
	for i := range min(n, points) {
		out = append(out, 1+i*n/min(n, points))
	}
	return out
}
