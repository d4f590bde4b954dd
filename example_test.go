package parley_test

import (
	"context"
	"encoding/csv"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"

	"parley"
	"parley/journal"
	"parley/llm"
	"parley/world"
	"parley/worlds/secrets"
)

// polite is a model of one's own: a function.
func polite(context.Context, *llm.Request) (*llm.Response, error) {
	return &llm.Response{Text: "I would rather not say."}, nil
}

// Play a plan that is built in Go, with a function in one seat and a simulated model in the other.
func ExamplePlay() {
	plan := parley.For(secrets.Kind(), func(p *secrets.Params) { p.Messages = 2 })
	plan.Agents = []world.Agent{{Name: "polite", Model: "mine/polite"}, {Name: "small", Model: "sim/small"}}
	plan.Lineup = map[string]string{"first": "polite", "second": "small"}
	plan.Episodes = 50
	result, err := parley.Play(context.Background(), parley.Run{
		Plan:      plan,
		Providers: map[string]parley.Provider{"mine": {Model: llm.Func(polite)}},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.State, result.Ended, "episodes,", result.Calls, "calls")
	if result.Failed > 0 {
		fmt.Println(result.Failed, "of them failed:", result.Fault)
	}
	for _, s := range result.Scores {
		if s.Score == "revealed" {
			fmt.Printf("%s gives its secret away: %v\n", s.Agent, s.Mean)
		}
	}
	// Output:
	// complete 50 episodes, 200 calls
	// polite gives its secret away: 0 (0 to 0.07135, n=50, wilson)
	// small gives its secret away: 0.48 (0.348 to 0.6149, n=50, wilson)
}

// Play a plan file into a run file. Play it again, and it goes on where it was stopped.
func ExamplePlay_file() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	run := parley.Run{
		PlanFile: "examples/secrets.yaml",
		Set:      []string{"plan.matrix.repeat=10", "limits.concurrency=8"},
		File:     filepath.Join(dir, "secrets.parley"),
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	run.Drain = ctx
	run.Progress = func(p parley.Progress) {
		if p.Ended == 5 {
			stop()
		}
	}
	result, err := parley.Play(context.Background(), run)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.State, "before the end:", result.Ended < 20)

	run.Drain, run.Progress = nil, nil
	result, err = parley.Play(context.Background(), run)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.State, result.Ended, "of", result.Episodes, "episodes")
	// Output:
	// stopped before the end: true
	// complete 20 of 20 episodes
}

// Wrap what answers: here with a header for each request, and a count of the answers that were cut off.
func ExampleRun_wrap() {
	plan := parley.For[secrets.Params](secrets.Kind(), nil)
	plan.Agents = []world.Agent{{Name: "one", Model: "sim/small"}, {Name: "two", Model: "sim/large"}}
	plan.Lineup = map[string]string{"first": "one", "second": "two"}
	var requests, cut atomic.Int64
	_, err := parley.Play(context.Background(), parley.Run{
		Plan: plan,
		Wrap: func(provider string, next llm.Model) llm.Model {
			return llm.Func(func(ctx context.Context, req *llm.Request) (*llm.Response, error) {
				requests.Add(1)
				req.Headers = map[string]string{"X-Project": "secrets"}
				resp, err := next.Ask(ctx, req)
				if err == nil && resp.Finish == llm.FinishLength {
					cut.Add(1)
				}
				return resp, err
			})
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(requests.Load(), "requests,", cut.Load(), "answers cut off")
	// Output:
	// 6 requests, 0 answers cut off
}

// Export what you need in the form that you need it: here the points of the first episodes as CSV.
func ExampleReader_Episodes() {
	ctx := context.Background()
	memory := &journal.Memory{}
	if _, err := parley.Play(ctx, parley.Run{PlanFile: "examples/secrets.yaml", Journal: memory}); err != nil {
		log.Fatal(err)
	}
	table := csv.NewWriter(os.Stdout)
	for episode, err := range parley.Read(memory).Episodes(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		for _, score := range episode.Outcome.Scores {
			if score.Name == "points" && episode.Number < 2 {
				agent := episode.Spec.Lineup[score.Seat]
				_ = table.Write([]string{strconv.Itoa(episode.Number), agent, fmt.Sprint(score.Value)})
			}
		}
	}
	table.Flush()
	// Output:
	// 0,small,0
	// 0,large,0
	// 1,large,3
	// 1,small,0
}

// Read a run: here one that is kept in memory. Open does the same for a run file.
func ExampleReader() {
	ctx := context.Background()
	memory := &journal.Memory{}
	_, err := parley.Play(ctx, parley.Run{
		PlanFile: "examples/secrets.yaml", Journal: memory,
	})
	if err != nil {
		log.Fatal(err)
	}
	run := parley.Read(memory)
	defer run.Close()

	revealing := 0
	for episode, err := range run.Episodes(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		for _, score := range episode.Outcome.Scores {
			if score.Name == "revealed" && score.Value > 0 {
				revealing++
			}
		}
	}
	fmt.Println(revealing, "secrets given away")

	var cost llm.Money
	for call, err := range run.Calls(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		cost = cost.Plus(call.Cost())
	}
	fmt.Println("cost:", cost)

	estimates, err := run.Estimates(ctx, parley.ByAgent)
	if err != nil {
		log.Fatal(err)
	}
	for _, e := range estimates {
		if e.Score == "points" {
			fmt.Println(e.Agent, e.Mean)
		}
	}
	// Output:
	// 78 secrets given away
	// cost: $0.018694
	// small 0.25 (0.1505 to 0.4059, n=50, cluster wilson)
	// large 1.57 (1.281 to 1.853, n=50, cluster wilson)
}

// Ask a thousand questions, as fast as the models' limits allow and for at most two dollars.
func ExampleAsker() {
	asker, err := parley.NewAsker(parley.AskerConfig{Budget: llm.Dollars(2)})
	if err != nil {
		log.Fatal(err)
	}
	defer asker.Close()

	questions := func(yield func(*llm.Request) bool) {
		for i := range 1000 {
			prompt := fmt.Sprintf("What is %d plus %d?", i, i)
			if !yield(&llm.Request{Model: "sim/small", Messages: []llm.Message{llm.User(prompt)}}) {
				return
			}
		}
	}
	answered := 0
	for _, result := range asker.Each(context.Background(), questions) {
		if result.Err != nil {
			log.Fatal(result.Err)
		}
		answered++
	}
	fmt.Println(answered, "answers for", asker.Cost())
	// Output:
	// 1000 answers for $0.013747
}

// Ask a model of your own: it gets retries, limits and the rest as any other.
func ExampleAsker_ask() {
	tries := 0
	flaky := func(context.Context, *llm.Request) (*llm.Response, error) {
		if tries++; tries == 1 {
			return nil, &llm.Error{Kind: llm.KindOverloaded, Message: "come back later"}
		}
		return &llm.Response{Text: "A talk between enemies."}, nil
	}
	asker, err := parley.NewAsker(parley.AskerConfig{
		Providers: map[string]parley.Provider{"mine": {Model: llm.Func(flaky), RPM: 600}},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer asker.Close()

	answer, err := asker.Ask(context.Background(), &llm.Request{
		Model:    "mine/flaky",
		Messages: []llm.Message{llm.User("What is a parley?")},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(answer.Text, "Attempts:", answer.Metadata.Attempts)
	// Output:
	// A talk between enemies. Attempts: 2
}
