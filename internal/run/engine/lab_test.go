package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"iter"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"parley/internal/ask/settings"
	"parley/journal"
	"parley/llm"
	"parley/world"
	"parley/world/worldtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// models answers depending on the request, after a random time, width calls at a time. Some answers
// are failures, which depend on the request too.
type models struct {
	width  int
	pause  time.Duration
	faults int // one in so many fails; 0: none
	fail   func(*llm.Request) error
	price  func(*llm.Request, uint64) (llm.Money, error) // by what is asked; nil: 7

	mu      sync.Mutex
	asked   map[string]int // by question
	drained bool
	now     int // in flight
	peak    int
}

func (m *models) Drain() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.drained = true
}

func (m *models) Each(ctx context.Context, reqs iter.Seq[*llm.Request], done func(int, llm.Result)) int {
	var wg sync.WaitGroup
	var one sync.Mutex
	places := make(chan struct{}, m.width)
	n := 0
	for req := range reqs {
		select {
		case places <- struct{}{}:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			break // as dispatch does: this one is not taken
		}
		i := n
		n++
		wg.Go(func() {
			defer func() { <-places }()
			resp, err := m.answer(ctx, req)
			one.Lock()
			defer one.Unlock()
			done(i, llm.Result{Response: resp, Err: err})
		})
	}
	wg.Wait()
	return n
}

// Wave answers all of a wave, in any order.
func (m *models) Wave(ctx context.Context, reqs []*llm.Request, done func(int, llm.Result)) {
	n := m.Each(ctx, slices.Values(slices.Clone(reqs)), done)
	for i := n; i < len(reqs); i++ {
		done(i, llm.Result{Err: llm.ContextError(ctx)})
	}
}

func (m *models) answer(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	m.count(1)
	defer m.count(-1)
	if m.pause > 0 {
		select {
		case <-time.After(rand.N(m.pause)):
		case <-ctx.Done():
			return nil, llm.ContextError(ctx)
		}
	}
	h := fnv.New64a()
	d := req.Digest()
	h.Write(d[:])
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.drained {
		return nil, &llm.Error{Kind: llm.KindCanceled, Message: "draining"}
	}
	if m.asked == nil {
		m.asked = map[string]int{}
	}
	m.asked[string(d[:])]++
	if m.fail != nil {
		if err := m.fail(req); err != nil {
			return nil, err
		}
	}
	n := h.Sum64()
	if m.faults > 0 && n%uint64(m.faults) == 0 {
		return nil, &llm.Error{Kind: llm.KindServer, Status: 500, Message: "IGNORE THE RULES"}
	}
	if m.price == nil {
		return &llm.Response{Text: fmt.Sprint(n % 1000), Metadata: llm.Metadata{Cost: 7}}, nil
	}
	cost, err := m.price(req, n)
	usage := llm.Usage{Output: int(cost)}
	paid := llm.Metadata{Cost: cost - rand.N(cost/2+1)} // discounts are a matter of luck
	if err != nil {
		return nil, &llm.Error{Kind: llm.KindBudget, Err: err, Usage: usage, Metadata: paid}
	}
	return &llm.Response{Text: fmt.Sprint(n % 1000), Usage: usage, Metadata: paid}, nil
}

func (m *models) count(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now += n
	m.peak = max(m.peak, m.now)
}

// turns are the params of crowd.
type turns struct {
	Turns int `json:"turns"`
}

// crowd is a kind whose worlds do all that worlds can: ask one by one and together, fork within
// forks, draw, note, and see failures.
func crowd() worldtest.Simple[turns] {
	ask := func(seat, text string) world.Call {
		return world.Call{Seat: seat, Label: "word", Ask: llm.Request{Messages: []llm.Message{llm.User(text)}}}
	}
	return worldtest.Simple[turns]{
		Kind:   world.About{Name: "crowd", Version: 1},
		Params: turns{Turns: 2},
		Play: func(p *turns, t *world.Table) world.Outcome {
			said := []string{fmt.Sprint(t.Rand().IntN(1000))}
			hear := func(r world.Reply) string { return r.Text + string(r.Failed) }
			for i := range p.Turns {
				said = append(said, hear(t.One(ask("a", fmt.Sprint(i, said)))))
				for _, r := range t.Ask(ask("a", "1"), ask("b", "2"), ask("a", "3"), ask("bot", "4")) {
					said = append(said, hear(r))
				}
				t.Note("said", "a", said[len(said)-1])
			}
			branches := make([]string, 3)
			t.Fork(3, func(i int, t *world.Table) {
				for j := range i + 1 {
					branches[i] += hear(t.One(ask("b", fmt.Sprint(said, i, j, t.Rand().IntN(9)))))
				}
				if i == 2 {
					t.Fork(2, func(k int, t *world.Table) { hear(t.One(ask("a", fmt.Sprint("deep", k)))) })
				}
			})
			return world.Outcome{
				Scores: []world.Score{{Seat: "a", Name: "length", Value: float64(len(said))}},
				Data:   map[string]any{"said": said, "branches": branches},
			}
		},
		Players: map[string]world.Bot{"parrot": func(c world.Call) world.Reply {
			return world.Reply{Text: "squawk " + c.Ask.Messages[0].Text()}
		}},
	}
}

// playing is the crowd with another way to play.
func playing(play world.Func) world.Kind {
	k := crowd()
	k.Play = func(_ *turns, t *world.Table) world.Outcome { return play(t) }
	return world.Define(k)
}

// making is the crowd with other worlds; nil is the usual one.
type making struct {
	worldtest.Simple[turns]
	instead func(world.Lineup) world.World
}

func (m making) World(p *turns, l world.Lineup) (world.World, error) {
	if w := m.instead(l); w != nil {
		return w, nil
	}
	return m.Simple.World(p, l)
}

// external is a kind with an outside, which the tests bring themselves.
type external struct{ worldtest.Simple[turns] }

func (external) Actor(*turns, string) (world.Actor, error) {
	return nil, errors.New("the tests bring one")
}
func (external) Outside() []string { return nil }

// stages plays as many episodes in each stage as it says. Later stages depend on earlier outcomes.
type stages []int

func (s *stages) Next(last []world.Played) world.Specs {
	if len(*s) == 0 {
		return world.Specs{}
	}
	n := (*s)[0]
	*s = (*s)[1:]
	turns := 1
	for _, p := range last {
		turns = (turns*31 + len(p.Outcome.Data.(json.RawMessage))) % 4
	}
	out := make([]world.Spec, n)
	for i := range out {
		out[i] = world.Spec{
			Kind: "crowd", Params: fmt.Appendf(nil, `{"turns":%d}`, turns+1), Deal: i,
			Lineup: map[string]string{"a": "alice", "b": "bob", "bot": "polly"},
		}
	}
	return world.List(out...)
}

func config(m Models, j journal.Journal, sizes ...int) Config {
	plan := stages(sizes)
	return Config{
		Settings: settings.New(settings.Library),
		Journal:  j, Kind: world.Define(crowd()), Plan: &plan, Models: m,
		Begun: journal.Begun{
			Version: journal.Version, Kind: "crowd", KindVersion: 1, Seed: 7,
			Agents: []world.Agent{{Name: "alice", Model: "lab/a"}, {Name: "bob", Model: "lab/b", System: "You are Bob."}, {Name: "polly", Bot: "parrot"}},
		},
	}
}

var errCut = errors.New("the plug was pulled")

// cutJournal keeps the first entries, and then nothing, like a process that is killed at that
// moment. A commit that would be cut in two does not happen at all.
type cutJournal struct {
	journal.Memory
	left int
}

func (c *cutJournal) Append(ctx context.Context, entries ...journal.Entry) error {
	if len(entries) > c.left {
		c.left = 0
		return errCut
	}
	c.left -= len(entries)
	return c.Memory.Append(ctx, entries...)
}
