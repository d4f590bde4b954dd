package engine_test

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"parley/internal/ask/settings"
	"parley/internal/run/engine"
	"parley/journal"
	"parley/llm"
	"parley/world"
)

// duet is a kind of world: one seat says a line, and then a second line that rhymes.
type duet struct{}

func (duet) About() world.About                { return world.About{Name: "duet", Version: 1, Doc: "Two lines."} }
func (duet) Defaults() *struct{}               { return &struct{}{} }
func (duet) Seats(*struct{}) ([]string, error) { return []string{"poet"}, nil }
func (duet) World(*struct{}, world.Lineup) (world.World, error) {
	ask := func(text string) world.Call {
		return world.Call{Seat: "poet", Label: "line", Ask: llm.Request{Messages: []llm.Message{llm.User(text)}}}
	}
	return world.Func(func(t *world.Table) world.Outcome {
		first := t.One(ask("A line, please."))
		second := t.One(ask("One that rhymes with: " + first.Text))
		return world.Outcome{Data: first.Text + " / " + second.Text}
	}), nil
}

// oneByOne makes a Models of a model. Package dispatch has one that keeps limits and retries.
type oneByOne struct{ llm.Model }

func (m oneByOne) Each(ctx context.Context, reqs iter.Seq[*llm.Request], done func(int, llm.Result)) (n int) {
	for req := range reqs {
		resp, err := m.Ask(ctx, req)
		done(n, llm.Result{Response: resp, Err: err})
		n++
	}
	return n
}

func (oneByOne) Drain() {}

// A run stops when the model's credit is used up, and continues where it stopped when there is
// more: recorded replies are not asked for again.
func Example() {
	credit := 3
	poet := llm.Func(func(_ context.Context, req *llm.Request) (*llm.Response, error) {
		if credit == 0 {
			return nil, &llm.Error{Kind: llm.KindQuota, Message: "no credit left"}
		}
		credit--
		text := "the sea"
		if strings.Contains(req.Messages[0].Text(), "rhymes") {
			text = "and me"
		}
		return &llm.Response{Text: text, Finish: llm.FinishStop}, nil
	})

	about := duet{}.About()
	run := engine.Config{
		Journal:  &journal.Memory{}, // lasts as long as the process
		Kind:     world.Define(duet{}),
		Models:   oneByOne{poet},
		Settings: &settings.Settings{Limits: settings.Limits{Live: 1}},
		Begun: journal.Begun{
			Version: journal.Version, Run: "example", Kind: about.Name, KindVersion: about.Version, Seed: 1,
			Agents: []world.Agent{{Name: "me", Model: "here/poet"}},
		},
	}
	for range 2 {
		// Each process needs a new plan: it is asked for all of its stages again.
		run.Plan = world.Repeat(world.Spec{Kind: about.Name, Params: []byte("{}"), Lineup: map[string]string{"poet": "me"}}, 2)
		res, err := engine.Run(context.Background(), run)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s: %d of %d episodes ended, %d calls made, %d read back\n", res.State, res.Ended, res.Episodes, res.Made.Calls, res.Replayed)
		if res.Reason.Kind == journal.ByCall {
			fmt.Println(res.Reason)
			credit = 10
		}
	}
	// Output:
	// stopped: 1 of 2 episodes ended, 3 calls made, 0 read back
	// quota: no credit left
	// complete: 2 of 2 episodes ended, 1 calls made, 1 read back
}
