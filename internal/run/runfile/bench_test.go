package runfile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"parley/internal/ask/settings"
	"parley/internal/run/engine"
	"parley/journal"
	"parley/llm"
	"parley/world"
	"parley/world/worldtest"
)

// The load of the benchmarks: conversations of twelve messages of 500 bytes between two
// seats, with a system prompt each. Every prompt holds all that was said before, so it has
// six and a half messages on average. What the other said is quoted, so that it is not
// the same text as the other's answer.
const talkCalls = 12

func words(seed string, n int) string {
	b := make([]byte, 0, n+len(seed)+40) // without fmt: a model that answers at once must not take long
	for i := 0; len(b) < n; i++ {
		b = append(append(b, seed...), " says word "...)
		b = append(strconv.AppendInt(b, int64(i), 10), ". "...)
	}
	return string(b[:n])
}

// talk returns the entries of call i of an episode: its turn and its reply.
func talk(episode, i int) [2]journal.Entry { return quoting(episode, i, "They say: ") }

func quoting(episode, i int, quote string) [2]journal.Entry {
	message := func(i int) string { return words(fmt.Sprintf("Episode %d, message %d:", episode, i), 500) }
	req := llm.Request{Model: "sim/small", MaxTokens: 400, Sample: episode*31 + i, Order: int64(episode)}
	req.Messages = append(req.Messages, llm.System(words(fmt.Sprintf("You are seat %d.", i%2), 500)))
	for k := range i {
		if k%2 == i%2 {
			req.Messages = append(req.Messages, llm.Assistant(message(k)))
		} else {
			req.Messages = append(req.Messages, llm.User(quote+message(k)))
		}
	}
	turn := journal.Turn{Episode: episode, Turn: i}
	return [2]journal.Entry{
		&journal.Turned{Turn: turn, Digest: journal.Digest{byte(i), byte(episode)}, Calls: 1},
		&journal.Replied{
			Turn: turn, Seat: []string{"host", "guest"}[i%2], Label: "message", Agent: "small", Request: &req,
			Response: &llm.Response{
				Text: message(i), Finish: llm.FinishStop, Model: "small-2026", Provider: "sim", ID: fmt.Sprintf("r-%d-%d", episode, i),
				Usage: llm.Usage{Input: 700, Output: 120}, Metadata: llm.Metadata{Attempts: 1, Cost: 123456, Latency: 800 * time.Millisecond, FirstByte: 90 * time.Millisecond},
			},
			At: time.Unix(1_800_000_000, int64(episode)),
		},
	}
}

func ended(episode int) *journal.Ended {
	return &journal.Ended{Episode: episode, At: time.Unix(1_800_000_000, 0), Outcome: world.Outcome{
		Scores: []world.Score{{Seat: "host", Name: "won", Value: 1}, {Seat: "guest", Name: "won", Value: 0}},
		Data:   json.RawMessage(`{"secrets":["a","b"],"rounds":6}`),
	}}
}

func staged(first, n int) *journal.Staged {
	specs := make([]world.Spec, n)
	for i := range specs {
		specs[i] = world.Spec{Kind: "secrets", Params: json.RawMessage(`{"messages":6,"topic":"a"}`), Lineup: map[string]string{"host": "small", "guest": "small"}, Deal: i}
	}
	return &journal.Staged{First: first, Specs: world.List(specs...)}
}

// play writes n episodes, with live ones at a time, as the engine does with waiting calls in each
// commit. each makes the commits.
func play(n, live, waiting int, each func([]journal.Entry)) (calls int) {
	batch := make([]journal.Entry, 0, 3*waiting)
	pending := 0
	for first := 0; first < n; first += live {
		for i := range talkCalls {
			for episode := first; episode < min(first+live, n); episode++ {
				e := talk(episode, i)
				batch = append(batch, e[0], e[1])
				if i == talkCalls-1 {
					batch = append(batch, ended(episode))
				}
				calls++
				if pending++; pending >= waiting {
					each(batch)
					batch, pending = batch[:0], 0
				}
			}
		}
	}
	if pending > 0 {
		each(batch)
	}
	return calls
}

func BenchmarkAppend(b *testing.B) {
	for _, waiting := range []int{1, 64, 1000} {
		b.Run(fmt.Sprintf("waiting=%d", waiting), func(b *testing.B) {
			s, err := Open(context.Background(), filepath.Join(b.TempDir(), "run.db"), Create)
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			var spent time.Duration
			calls := play(max(1, b.N/talkCalls), 20_000, waiting, func(batch []journal.Entry) {
				start := time.Now()
				if err := s.Append(context.Background(), batch...); err != nil {
					b.Fatal(err)
				}
				spent += time.Since(start)
			})
			b.ReportMetric(float64(calls)/spent.Seconds(), "calls/s")
			b.ReportMetric(float64(spent.Nanoseconds())/float64(calls), "ns/call")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// built makes a run file of about n calls and returns its path. PARLEY_BENCH_FILE keeps it for the
// next run.
func built(b *testing.B, n int) string {
	b.Helper()
	path := filepath.Join(b.TempDir(), "run.db")
	if dir := os.Getenv("PARLEY_BENCH_DIR"); dir != "" {
		path = filepath.Join(dir, fmt.Sprintf("bench-%d.db", n))
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	ctx := context.Background()
	s, err := Open(ctx, path, Create)
	if err != nil {
		b.Fatal(err)
	}
	episodes := n / talkCalls
	err = s.Append(ctx, &journal.Begun{Version: journal.Version, Run: "bench", Kind: "secrets"}, &journal.Opened{}, staged(0, episodes))
	if err != nil {
		b.Fatal(err)
	}
	play(episodes, 20_000, 4096, func(batch []journal.Entry) {
		if err := s.Append(ctx, batch...); err != nil {
			b.Fatal(err)
		}
	})
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	return path
}

func BenchmarkOpen(b *testing.B) {
	for _, calls := range []int{60_000, 1_000_000} {
		b.Run(fmt.Sprintf("calls=%d", calls), func(b *testing.B) {
			path := built(b, calls)
			for b.Loop() {
				s, err := Open(context.Background(), path, Resume)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := s.Head(context.Background()); err != nil {
					b.Fatal(err)
				}
				if err := s.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkEpisode(b *testing.B) {
	const calls = 60_000
	s, err := OpenRead(built(b, calls))
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	b.ResetTimer()
	var next atomic.Int64
	b.RunParallel(func(pb *testing.PB) { // as the engine's workers do
		for pb.Next() {
			entries, err := journal.Episode(context.Background(), s, int(next.Add(1))%(calls/talkCalls))
			if err != nil || len(entries) != 2*talkCalls {
				b.Error(len(entries), err)
			}
		}
	})
	b.ReportMetric(float64(b.N*talkCalls)/b.Elapsed().Seconds(), "calls/s")
}

func BenchmarkRead(b *testing.B) {
	const calls = 60_000
	s, err := OpenRead(built(b, calls))
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	n := 0
	for b.Loop() {
		err := s.Read(context.Background(), journal.Whole(), func(journal.Entry) error { n++; return nil })
		if err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N*calls)/b.Elapsed().Seconds(), "calls/s")
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "entries/s")
}

// BenchmarkSize compares the size of a run file with that of a file of all prompts and answers as
// JSON.
func BenchmarkSize(b *testing.B) {
	for name, quote := range map[string]string{"as it is": "", "quoted": "They say: "} {
		b.Run(name, func(b *testing.B) {
			const episodes = 2000
			path := filepath.Join(b.TempDir(), "run.db")
			s, err := Open(context.Background(), path, Create)
			if err != nil {
				b.Fatal(err)
			}
			whole := 0
			for i := range talkCalls {
				var batch []journal.Entry
				for episode := range episodes {
					e := quoting(episode, i, quote)
					r := e[1].(*journal.Replied)
					q, _ := json.Marshal(r.Request)
					a, _ := json.Marshal(r.Response)
					whole += len(q) + len(a)
					batch = append(batch, e[:]...)
				}
				if err := s.Append(context.Background(), batch...); err != nil {
					b.Fatal(err)
				}
			}
			if err := s.Close(); err != nil {
				b.Fatal(err)
			}
			info, err := os.Stat(path)
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() { // there is nothing to time
			}
			const calls = episodes * talkCalls
			b.ReportMetric(float64(info.Size())/calls, "bytes/call")
			b.ReportMetric(float64(whole)/calls, "whole-bytes/call")
			b.ReportMetric(float64(info.Size())/float64(whole), "ratio")
			b.ReportMetric(0, "ns/op")
		})
	}
}

func note(kind string) []world.Note {
	return []world.Note{{Kind: kind, Seat: "host", Data: json.RawMessage(`{"text":"he knows"}`)}}
}

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
	var texts []string
	for i := range talkCalls {
		ask := llm.Request{Messages: append(make([]llm.Message, 0, i+1), llm.System("You are one of two."))}
		for k, text := range texts {
			if k%2 == i%2 {
				ask.Messages = append(ask.Messages, llm.Assistant(text))
			} else {
				ask.Messages = append(ask.Messages, llm.User(text))
			}
		}
		texts = append(texts, t.One(world.Call{Seat: []string{"host", "guest"}[i%2], Label: "message", Ask: ask}).Text)
	}
	return world.Outcome{Data: len(texts)}
}

func benchRun(j journal.Journal, episodes int) engine.Config {
	return engine.Config{
		Settings: settings.New(settings.Library),
		Journal:  j, Plan: staged(0, episodes).Specs, Models: instant{},
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
	b.ReportMetric(float64(res.Made.Calls)/b.Elapsed().Seconds(), "calls/s")
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
	if err != nil || res.Made.Calls > 0 {
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
		c.Drain, c.Models, c.Settings.Pace = drain, &until{left: asks, stop: stop}, "wave"
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
		if res.Made.Calls == 0 {
			b.Fatalf("%+v", res)
		}
		replayed = res.Replayed
	}
	b.ReportMetric(float64(replayed), "replayed")
}
