package runfile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"testing"

	"parley/internal/run/engine"
	"parley/journal"
	"parley/llm"
	"parley/world"
	"parley/world/worldtest"
)

// instant is a model that answers at once.
type instant struct{}

func (instant) Each(_ context.Context, reqs iter.Seq[*llm.Request], done func(int, llm.Result)) (n int) {
	for q := range reqs {
		done(n, llm.Result{Response: &llm.Response{
			Text: words(fmt.Sprintf("Answer %d:", q.Sample), 500), Finish: llm.FinishStop, Model: "small", Provider: "sim",
			Usage: llm.Usage{Input: 100 * len(q.Messages), Output: 120}, Metadata: llm.Metadata{Attempts: 1, Cost: 1000},
		}})
		n++
	}
	return n
}

func (instant) Drain() {}

// conversation is a world of talkCalls messages between two seats.
func conversation(_ *json.RawMessage, t *world.Table) world.Outcome {
	var said []string
	for i := range talkCalls {
		ask := llm.Request{Messages: append(make([]llm.Message, 0, i+1), llm.System("You are one of two."))}
		for k, text := range said {
			if k%2 == i%2 {
				ask.Messages = append(ask.Messages, llm.Assistant(text))
			} else {
				ask.Messages = append(ask.Messages, llm.User(text))
			}
		}
		said = append(said, t.One(world.Call{Seat: []string{"host", "guest"}[i%2], Label: "message", Ask: ask}).Text)
	}
	return world.Outcome{Data: len(said)}
}

func benchRun(j journal.Journal, episodes int) engine.Config {
	return engine.Config{
		Journal: j, Plan: staged(0, episodes).Specs, Models: instant{},
		Kind:  world.Define(worldtest.Simple[json.RawMessage]{Kind: world.About{Name: "talk", Version: 1}, Play: conversation}),
		Begun: journal.Begun{Version: journal.Version, Kind: "talk", KindVersion: 1, Agents: []world.Agent{{Name: "small", Model: "sim/small"}}},
	}
}

// BenchmarkEngine plays episodes through the engine into a run file, with a model that answers at once.
func BenchmarkEngine(b *testing.B) {
	s, err := Open(context.Background(), filepath.Join(b.TempDir(), "run.db"), Create)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	b.ResetTimer()
	res, err := engine.Run(context.Background(), benchRun(s, max(1, b.N/talkCalls)))
	if err != nil || res.State != journal.Complete {
		b.Fatal(res, err)
	}
	b.ReportMetric(float64(res.Asked)/b.Elapsed().Seconds(), "calls/s")
}

// BenchmarkRefold replays a run whose episodes have all replies but no end.
func BenchmarkRefold(b *testing.B) {
	ctx := context.Background()
	s, err := Open(ctx, filepath.Join(b.TempDir(), "run.db"), Create)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	episodes := max(1, b.N/talkCalls)
	if _, err := engine.Run(ctx, benchRun(endless{s}, episodes)); err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	res, err := engine.Run(ctx, benchRun(s, episodes))
	if err != nil || res.Asked > 0 {
		b.Fatal(res, err)
	}
	b.ReportMetric(float64(res.Replayed)/b.Elapsed().Seconds(), "calls/s")
}

// endless is a journal that does not record the ends of episodes.
type endless struct{ *Store }

func (e endless) Append(ctx context.Context, entries ...journal.Entry) error {
	var kept []journal.Entry
	for _, entry := range entries {
		if _, ended := entry.(*journal.Ended); !ended {
			kept = append(kept, entry)
		}
	}
	return e.Store.Append(ctx, kept...)
}

// until is a model that stops the run after a number of calls.
type until struct {
	instant
	left int
	stop context.CancelFunc
}

func (u *until) Each(ctx context.Context, reqs iter.Seq[*llm.Request], done func(int, llm.Result)) int {
	return u.instant.Each(ctx, func(yield func(*llm.Request) bool) {
		for q := range reqs {
			if u.left--; u.left == 0 {
				u.stop()
			}
			if !yield(q) {
				return
			}
		}
	}, done)
}

// BenchmarkResume opens a run that was stopped after 1,000,000 calls, with 20,000 episodes half
// played, and resumes it until the first new call.
func BenchmarkResume(b *testing.B) {
	const calls = 1_000_000
	path := filepath.Join(b.TempDir(), "run.db")
	sit := func(mode Mode, asks int) engine.Result {
		s, err := Open(context.Background(), path, mode)
		if err != nil {
			b.Fatal(err)
		}
		c := benchRun(s, calls/talkCalls+10_000)
		drain, stop := context.WithCancel(context.Background())
		defer stop()
		c.Drain, c.Models, c.Wave = drain, &until{left: asks, stop: stop}, true
		res, err := engine.Run(context.Background(), c)
		if err := errors.Join(err, s.Close()); err != nil {
			b.Fatal(err)
		}
		return res
	}
	sit(Create, calls)
	b.ResetTimer()
	replayed := 0
	for range b.N {
		res := sit(Resume, 1)
		if res.Asked == 0 {
			b.Fatalf("%+v", res)
		}
		replayed = res.Replayed
	}
	b.ReportMetric(float64(replayed), "replayed")
}
