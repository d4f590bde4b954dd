package parley_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"

	"parley"
	"parley/journal"
	"parley/llm"
	"parley/world"
)

// fullDisk is a journal that nothing can be written to.
type fullDisk struct{ journal.Memory }

var errFull = errors.New("disk full")

func (*fullDisk) Append(context.Context, ...journal.Entry) error { return errFull }

// TestPlayEndsEarly wants the error of a run that ends before its first entry is written.
func TestPlayEndsEarly(t *testing.T) {
	t.Parallel()
	r := duel(words, 2)
	r.Journal = &fullDisk{}
	if got, err := parley.Play(t.Context(), r); got != nil || !errors.Is(err, errFull) {
		t.Errorf("a full disk: %+v, %v", got, err)
	}
	stopped := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(stopped)
	for name, keep := range map[string]func(*parley.Run){
		"memory": func(r *parley.Run) { r.Journal = &journal.Memory{} },
		"file":   func(r *parley.Run) { r.File = runFile(t) },
	} {
		r := duel(words, 2)
		keep(&r)
		if got, err := parley.Play(ctx, r); err == nil || got != nil && got.Ended > 0 {
			t.Errorf("%s, stopped before it began: %+v, %v", name, got, err)
		}
	}
}

// chat is a kind whose one seat is asked on and on, and that breaks its promises where a function is set.
type chat struct {
	defaults, seats, measures, world, bot func()
	standIn                               func(*llm.Request)
	play                                  func(*world.Table)
	data                                  any
}

type chatParams struct{}

func do(f func()) {
	if f != nil {
		f()
	}
}

func (chat) About() world.About { return world.About{Name: "chat", Version: 1} }

func (c chat) Defaults() *chatParams {
	do(c.defaults)
	return &chatParams{}
}

func (c chat) Seats(*chatParams) ([]string, error) {
	do(c.seats)
	return []string{"one"}, nil
}

func (c chat) Measures(*chatParams) []world.Measure {
	do(c.measures)
	return nil
}

func (c chat) Bots() map[string]world.Bot {
	return map[string]world.Bot{"bot": func(world.Call) world.Reply {
		do(c.bot)
		return world.Reply{Text: "I am a bot."}
	}}
}

func (c chat) StandIn(_ string, req *llm.Request, _ uint64) (string, bool) {
	text := fmt.Sprintf("I heard %q.", req.Messages[0].Text())
	if c.standIn != nil {
		c.standIn(req)
	}
	return text, true
}

func (c chat) World(*chatParams, world.Lineup) (world.World, error) {
	do(c.world)
	return world.Func(func(t *world.Table) world.Outcome {
		var transcript []llm.Message
		for range 4 {
			transcript = append(transcript, llm.User(fmt.Sprintf("question %d", t.Rand().IntN(1000))))
			reply := t.One(world.Call{Seat: "one", Ask: llm.Request{Messages: transcript}})
			transcript = append(transcript, llm.Assistant(reply.Text))
		}
		if c.play != nil {
			c.play(t)
		}
		if c.data != nil {
			return world.Outcome{Data: c.data}
		}
		return world.Outcome{Data: transcript[len(transcript)-1].Text()}
	}), nil
}

// run is a run of the kind that a model plays.
func (c chat) run(t *testing.T, model string, own llm.Func) parley.Run {
	t.Helper()
	plan := parley.For[chatParams](world.Define(c), nil)
	plan.Episodes, plan.Agents = 8, []world.Agent{{Name: "a", Model: model}}
	r := parley.Run{
		File: runFile(t), Plan: plan,
		Providers: map[string]parley.Provider{"mine": {Model: own}},
	}
	if model == "" {
		r.Plan.Agents[0].Bot = "bot"
	}
	return r
}

// badJSON is data that panics where it is recorded.
type badJSON struct{}

func (badJSON) MarshalJSON() ([]byte, error) { panic("no JSON") }

// TestPlayKinds plays kinds that do not do what a Definition promises. The fault of a part that an episode has is its
// own; that of another is an error before anything is played.
func TestPlayKinds(t *testing.T) {
	t.Parallel()
	boom := func() { panic("boom") }
	nan := math.NaN()
	asks := func(req llm.Request) func(*world.Table) {
		req.Messages = []llm.Message{llm.User("?")}
		return func(t *world.Table) { t.One(world.Call{Seat: "one", Ask: req}) }
	}
	for name, c := range map[string]struct {
		kind  chat
		model string
		fault string // of every episode; "": they end
		err   string // of Play
	}{
		"keeps its promises":        {model: "sim/small"},
		"defaults panic":            {kind: chat{defaults: boom}, model: "sim/small", err: "kind chat: Defaults panicked: boom"},
		"seats panic":               {kind: chat{seats: boom}, model: "sim/small", err: "Seats panicked: boom"},
		"measures panic":            {kind: chat{measures: boom}, model: "sim/small", err: "Measures panicked: boom"},
		"a world that panics":       {kind: chat{world: boom}, model: "sim/small", fault: "panic: boom"},
		"a world ends a goroutine":  {kind: chat{world: runtime.Goexit}, model: "sim/small", fault: "Goexit"},
		"play ends its goroutine":   {kind: chat{play: func(*world.Table) { runtime.Goexit() }}, model: "sim/small", fault: "Goexit"},
		"a fork ends its goroutine": {kind: chat{play: func(t *world.Table) { t.Fork(2, func(int, *world.Table) { runtime.Goexit() }) }}, model: "sim/small", fault: "Goexit"},
		"data that panics":          {kind: chat{data: badJSON{}}, model: "sim/small", fault: "no JSON"},
		"data that is not JSON":     {kind: chat{data: nan}, model: "sim/small", fault: "outcome: json"},
		"a stand-in that panics":    {kind: chat{standIn: func(*llm.Request) { boom() }}, model: "sim/small", fault: "the stand-in panicked: boom"},
		"a bot that panics":         {kind: chat{bot: boom}, fault: "the bot panicked: boom"},
		"asks with NaN":             {kind: chat{play: asks(llm.Request{Temperature: &nan})}, model: "sim/small", fault: "NaN"},
		"asks with a bad extra":     {kind: chat{play: asks(llm.Request{Extra: map[string]json.RawMessage{"x": json.RawMessage("{")}})}, model: "sim/small", fault: "not JSON"},
		"asks with an empty extra":  {kind: chat{play: asks(llm.Request{Extra: map[string]json.RawMessage{"x": {}}})}, model: "sim/small", fault: "is empty"},
		"asks with a bad schema":    {kind: chat{play: asks(llm.Request{Schema: &llm.Schema{Name: "x", JSON: json.RawMessage("{")}})}, model: "sim/small", fault: "not JSON"},
		"asks with a bad tool":      {kind: chat{play: asks(llm.Request{Tools: []llm.Tool{{Name: "x", Parameters: json.RawMessage("{")}}})}, model: "sim/small", fault: "not JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := parley.Play(t.Context(), c.kind.run(t, c.model, words))
			if c.err != "" {
				if got != nil || err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("%+v, %v; want an error with %q", got, err, c.err)
				}
				return
			}
			if err != nil || got.State != journal.Complete || got.Ended != 8 || !strings.Contains(got.Fault, c.fault) || (c.fault == "") != (got.Failed == 0) {
				t.Errorf("%+v, %v; want the fault %q", got, err, c.fault)
			}
		})
	}
}

// TestPlayOwnRequests plays with a model and a stand-in that write to all that they are given, and wants what those play
// that do not, also of a run that is resumed.
func TestPlayOwnRequests(t *testing.T) {
	t.Parallel()
	writes := func(req *llm.Request) {
		req.Model, req.Sample = "mine/other", 7
		for i := range req.Messages {
			req.Messages[i].Role = llm.RoleSystem
			clear(req.Messages[i].Parts)
		}
	}
	own := func(ctx context.Context, req *llm.Request) (*llm.Response, error) {
		resp, err := words(ctx, req)
		writes(req)
		return resp, err
	}
	for _, model := range []string{"mine/a", "sim/small"} {
		want := play(t, chat{}.run(t, model, words))
		ctx, cancel := context.WithCancel(t.Context())
		r := chat{standIn: writes}.run(t, model, own)
		r.Set = []string{"limits.concurrency=1"}
		r.Progress = func(p parley.Progress) {
			if p.Calls == 13 {
				cancel()
			}
		}
		if _, err := parley.Play(ctx, r); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		r.Progress = nil
		if got := play(t, r); got.Digest != want.Digest || got.Calls != want.Calls {
			t.Errorf("%s: %+v, want what one plays that writes nothing: %+v", model, got, want)
		}
	}
}

// TestEachPanics wants the panic of whoever makes the requests in the loop, after the results of those that were made.
func TestEachPanics(t *testing.T) {
	t.Parallel()
	asker := newAsker(t, parley.AskerConfig{Providers: mine(words)})
	answered := 0
	func() {
		defer func() {
			if v := recover(); v != "out of questions" {
				t.Errorf("the loop panicked with %v", v)
			}
		}()
		for _, r := range asker.Each(t.Context(), func(yield func(*llm.Request) bool) {
			yield(&llm.Request{Model: "mine/a", Messages: []llm.Message{llm.User("?")}})
			panic("out of questions")
		}) {
			if answered++; r.Err != nil {
				t.Error(r.Err)
			}
		}
	}()
	if answered != 1 {
		t.Errorf("%d answers, want 1", answered)
	}
	for _, r := range asker.Each(t.Context(), nil) {
		if llm.KindOf(r.Err) != llm.KindBadRequest || !strings.Contains(r.Err.Error(), "reqs is nil") {
			t.Errorf("without requests: %v", r.Err)
		}
		answered++
	}
	if answered != 2 {
		t.Error("without requests: no error")
	}
}

// TestReadNothing wants an error, and no panic, of a journal that is nil.
func TestReadNothing(t *testing.T) {
	t.Parallel()
	r := parley.Read(nil)
	if head, err := r.Head(t.Context()); head != nil || err == nil || !strings.Contains(err.Error(), "holds no run yet") {
		t.Errorf("%+v, %v", head, err)
	}
	for _, err := range r.Calls(t.Context()) {
		if err != nil {
			t.Error(err)
		}
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}
