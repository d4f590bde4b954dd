package worldtest

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"

	"parley/llm"
	"parley/world"
)

// exercise is a kind with the options of its exercise.
type exercise struct {
	Options
	kind world.Kind
}

// points limits how many points of an episode are tried for refolds and single failures.
const points = 40

// game makes a new episode, with its own params and world.
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
		l[s] = e.agent(s)
	}
	return l
}

// agent returns the agent in a seat.
func (e *exercise) agent(seat string) world.Agent {
	if e.Lineup != nil {
		return e.Lineup[seat]
	}
	return world.Agent{Name: "agent of " + seat, Model: "test/model"}
}

// good answers a deal's calls with reply.
func (e *exercise) good(deal int) answerer {
	return func(p callID, c world.Call) world.Reply {
		reply, _ := e.reply(deal, p, c)
		return reply
	}
}

// reply returns a good reply to a call: that of Options.Answer, the kind's stand-in, or Prose. An error says why it
// has no reply.
func (e *exercise) reply(deal int, p callID, c world.Call) (world.Reply, error) {
	player, ok := world.As[world.StandIn](e.kind)
	switch {
	case e.Answer != nil:
		return e.Answer(c, p.rand(deal)), nil
	case c.Act != nil:
		return failed(llm.KindInvalid), fmt.Errorf("the call %q is an act: give Options.Answer", c.Label)
	case ok:
		return standIn(player, e.agent(c.Seat).Request(c.Ask), p.rand(deal).Uint64())
	case c.Ask.Schema != nil:
		return failed(llm.KindInvalid), fmt.Errorf("the call %q has a schema: give Options.Answer, or give the kind a stand-in", c.Label)
	}
	return Prose(c, p.rand(deal)), nil
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
		return nil, fmt.Errorf("deal %d: %w", deal, found(nowhere(), "the episode has no end: a strand waits for nothing"))
	}
	return g, nil
}

// deals calls f for each deal, until one fails.
func (e *exercise) deals(f func(deal int) error) []error {
	for deal := range e.Deals {
		if err := f(deal); err != nil {
			return []error{err}
		}
	}
	return nil
}

// once plays each deal with good replies. At least one play must end without failing, unless no reply could have
// helped: otherwise only the world's failures would be exercised.
func (e *exercise) once() []error {
	why, ended := "", false
	bad := e.deals(func(deal int) error {
		var first error
		g, err := e.played(deal, func(p callID, c world.Call) world.Reply {
			reply, err := e.reply(deal, p, c)
			if err != nil && first == nil {
				first = fmt.Errorf("deal %d: %w", deal, found(p, "%s", err.Error()))
			}
			return reply
		})
		if first != nil || err != nil {
			return cmp.Or(first, err)
		}
		if g.answered == 0 || g.result.Failed == "" {
			ended = true
		}
		why = g.result.Failed
		return nil
	})
	if !ended && bad == nil {
		bad = []error{fmt.Errorf("every play fails (%s), so nothing else would be exercised: give Options.Answer replies that play the world to its end", why)}
	}
	return bad
}

func (e *exercise) twice() []error {
	return e.deals(func(deal int) error {
		first, err := e.played(deal, e.good(deal))
		if err != nil {
			return err
		}
		// More than twice: the order of a small map is often the same by chance.
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

// beside plays two deals step by step at the same time: worlds of one kind must share nothing.
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

// refolds stops a game after each number of replies, plays it again from the start with the recorded replies, and then
// continues.
func (e *exercise) refolds() []error {
	return e.deals(func(deal int) error {
		whole, err := e.played(deal, e.good(deal))
		if err != nil {
			return err
		}
		for _, n := range spread(whole.answered) {
			recorded := map[callID]world.Reply{}
			good := e.good(deal)
			cut, err := e.game(deal, nil, func(p callID, c world.Call) world.Reply {
				recorded[p] = good(p, c)
				return recorded[p]
			})
			if err != nil {
				return err
			}
			for cut.answered < n && cut.step() {
			}
			cut.stop()
			again, err := e.played(deal, func(p callID, c world.Call) world.Reply {
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
			if err := cmp.Or(errors.Join(g.problems...), first.same(g)); err != nil {
				return fmt.Errorf("deal %d, strands resumed in another order (%d): %w", deal, i+1, err)
			}
		}
		return nil
	})
}

// failures makes every call fail in every way, and then each call alone.
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
			_, err := e.played(deal, func(p callID, c world.Call) world.Reply {
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

// nonsense replies with nonsense, always and then sometimes.
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
		g, err := e.game(0, lineup, func(p callID, c world.Call) world.Reply {
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

// spread returns the numbers from 1 to n, or some of them if there are many.
func spread(n int) []int {
	var out []int
	for i := range min(n, points) {
		out = append(out, 1+i*n/min(n, points))
	}
	return out
}
