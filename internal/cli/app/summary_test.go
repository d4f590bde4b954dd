package app

import (
	"context"
	"encoding/binary"
	"runtime/metrics"
	"sync"
	"testing"
	"time"

	"parley/internal/ask/settings"
	"parley/internal/run/engine"
	"parley/internal/run/planfile"
	"parley/journal"
	"parley/world"
	"parley/worlds/secrets"
)

// ended is a journal of a run whose episodes have ended, each with its own play and deal. It has only a head.
type ended struct {
	journal.Memory
	episodes int
}

func (j *ended) Head(context.Context) (*journal.Head, error) {
	h := &journal.Head{}
	h.Add(&journal.Begun{Kind: "secrets", KindVersion: 2, Agents: []world.Agent{{Name: "a", Model: "sim/small"}, {Name: "b", Model: "sim/large"}}})
	spec := world.Spec{Kind: "secrets", Params: []byte(`{}`), Lineup: map[string]string{"first": "a", "second": "b"}}
	h.Add(&journal.Staged{Specs: world.Repeat(spec, j.episodes)})
	e := journal.Ended{Outcome: world.Outcome{Scores: []world.Score{
		{Seat: "first", Name: "points"}, {Seat: "first", Name: "found"}, {Seat: "second", Name: "points"}, {Seat: "second", Name: "found"},
	}}}
	for n := range j.episodes {
		e.Episode = n
		binary.BigEndian.PutUint64(e.Play[:], uint64(n)+1)
		for i := range e.Outcome.Scores {
			e.Outcome.Scores[i].Value = float64((n + i) % 3)
		}
		h.End(3*n+3, &e)
	}
	return h, nil
}

// BenchmarkSummarize sums up a million episodes. It reports how much of the heap was live at most, after a collection.
func BenchmarkSummarize(b *testing.B) {
	const episodes = 1_000_000
	j := &ended{episodes: episodes}
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/total:bytes"}}
	for range b.N {
		var peak [2]uint64
		ctx, end := context.WithCancel(b.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			for ctx.Err() == nil {
				metrics.Read(live)
				for i := range peak {
					peak[i] = max(peak[i], live[i].Value.Uint64())
				}
				time.Sleep(time.Millisecond)
			}
		})
		sum, err := process{plan: &planfile.Plan{Settings: settings.New(settings.Plan), Kind: secrets.Kind()}, result: engine.Result{State: journal.Complete}}.summarize(b.Context(), j)
		end()
		wg.Wait()
		if err != nil || sum.Distinct != episodes || sum.Copies != 0 || len(sum.Scores) != 4 || sum.Scores[0].N != episodes {
			b.Fatalf("%+v %v", sum, err)
		}
		b.ReportMetric(float64(peak[0])/1e6, "MB-live")
		b.ReportMetric(float64(peak[1])/1e6, "MB-total")
	}
}
