package engine

import (
	"context"
	"iter"
	"runtime"
	"testing"

	"parley/journal"
	"parley/llm"
	"parley/world"
)

// crowded holds every request until enough are there, and measures the memory in use.
type crowded struct {
	wait int
	mb   float64
}

func (*crowded) Drain() {}

func (c *crowded) Each(_ context.Context, reqs iter.Seq[*llm.Request], done func(int, llm.Result)) int {
	var held []int
	n := 0
	for range reqs {
		held = append(held, n)
		n++
		if len(held) < c.wait {
			continue
		}
		if c.mb == 0 {
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			c.mb = float64(m.HeapInuse+m.StackInuse) / (1 << 20)
		}
		for _, i := range held {
			done(i, llm.Result{Response: &llm.Response{Text: "yes", Finish: llm.FinishStop}})
		}
		held = held[:0]
	}
	return n
}

// BenchmarkLive plays 20,000 episodes at once, each a conversation with a call in flight, and
// measures the memory of all of them. The target is 700 MB.
func BenchmarkLive(b *testing.B) {
	const episodes, turns = 20_000, 4
	kind := playing(func(t *world.Table) world.Outcome {
		var said []llm.Message
		for range turns {
			said = append(said, llm.User("The quick brown fox jumps over the lazy dog, and then it rests in the shade of a tree."))
			r := t.One(world.Call{Seat: "a", Label: "message", Ask: llm.Request{Messages: said}})
			said = append(said, llm.Assistant(r.Text))
		}
		return world.Outcome{}
	})
	for range b.N {
		m := &crowded{wait: episodes}
		c := config(m, &journal.Memory{})
		c.Kind = kind
		c.Plan = world.Repeat(world.Spec{Kind: "crowd", Params: []byte("{}"), Lineup: map[string]string{"a": "alice"}}, episodes)
		res, err := Run(context.Background(), c)
		if err != nil || res.State != journal.Complete {
			b.Fatal(res, err)
		}
		b.ReportMetric(m.mb, "MB")
		b.ReportMetric(m.mb*1024/episodes, "KB/episode")
	}
}
