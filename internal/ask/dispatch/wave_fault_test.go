package dispatch_test

import (
	"testing"
	"time"

	"parley/internal/ask/batch"
	"parley/internal/ask/dispatch"
	"parley/internal/ask/sim"
	"parley/internal/ask/sim/simhttp"
)

// TestWaveFaults makes every fault of batches happen, some always: each call gets its own answer
// nevertheless.
func TestWaveFaults(t *testing.T) {
	t.Parallel()
	cases := []struct {
		fault  sim.Fault
		chance float64
		route  batch.Route
		seen   func(p batch.Progress, st simhttp.Stats) bool
	}{
		{sim.FaultLineExpired, 0.5, batch.Batch, func(p batch.Progress, st simhttp.Stats) bool { return p.Created > 1 }},
		{sim.FaultLineExpired, 1, batch.Batch, func(p batch.Progress, st simhttp.Stats) bool { return p.Created == 3 }},
		{sim.FaultLineExpired, 0.5, batch.Auto, func(p batch.Progress, st simhttp.Stats) bool { return p.Created == 1 }},
		{sim.FaultLineErrored, 0.5, batch.Batch, func(p batch.Progress, st simhttp.Stats) bool { return p.Created > 1 }},
		{sim.FaultLineMissing, 0.5, batch.Batch, func(p batch.Progress, st simhttp.Stats) bool { return p.Created > 1 && p.Missing > 10 }},
		{sim.FaultLineDuplicate, 0.5, batch.Batch, func(p batch.Progress, st simhttp.Stats) bool { return p.Created == 1 && p.Duplicate > 10 }},
		{sim.FaultBatch429, 0.5, batch.Batch, func(p batch.Progress, st simhttp.Stats) bool { return st.Batches.Created == 1 }},
		{sim.FaultBatchFails, 0.5, batch.Batch, func(p batch.Progress, st simhttp.Stats) bool { return true }},
		{sim.FaultBatchFails, 1, batch.Batch, func(p batch.Progress, st simhttp.Stats) bool { return st.Batches.Requests == 0 }},
		{sim.FaultBatchVanishes, 1, batch.Batch, func(p batch.Progress, st simhttp.Stats) bool { return p.Lost == 3 && p.Created == 3 }},
		{sim.FaultBatchVanishes, 1, batch.Auto, func(p batch.Progress, st simhttp.Stats) bool { return p.Lost == 1 && p.Created == 1 }},
	}
	for _, name := range dialects() {
		for _, c := range cases {
			if name != "openai" && c.fault == sim.FaultBatchFails { // which only a file can
				continue
			}
			if name == "anthropic" && c.fault == sim.FaultBatch429 { // it asks for whole seconds: see package batcher
				continue
			}
			t.Run(name+" "+string(c.fault)+" "+string(c.route), func(t *testing.T) {
				t.Parallel()
				cfg := faults(sim.Faults{c.fault: c.chance})
				cfg.Batch.RetryAfter = time.Millisecond
				l, j, reqs := newLab(t, cfg), &journal{left: -1}, questions(120)
				d := l.dispatcher(t, name, with(j), func(cfg *dispatch.Config) { cfg.Batch.Route = c.route })
				got := wave(t, t.Context(), d, reqs)
				p, st := d.Batches(), l.Stats()
				answers(t, l, name, reqs, got)
				if !c.seen(p, st) {
					t.Errorf("%+v\n%+v", p, st)
				}
				if len(j.open()) != 0 || len(p.Open) != 0 || p.Queued != 0 {
					t.Errorf("left open: %s, %+v", j.steps(), p)
				}
			})
		}
	}
}

// TestWaveAllFaultsAtOnce makes all faults happen together, for a long time.
func TestWaveAllFaultsAtOnce(t *testing.T) {
	t.Parallel()
	for _, name := range dialects() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := faults(sim.Faults{
				sim.FaultLineExpired: 0.1, sim.FaultLineErrored: 0.1, sim.FaultLineMissing: 0.1, sim.FaultLineDuplicate: 0.1,
				sim.FaultBatch429: 0.2, sim.FaultBatchFails: 0.2, sim.FaultBatchVanishes: 0.2,
				sim.FaultError500: 0.1, sim.FaultReset: 0.1,
			})
			if name == "anthropic" {
				delete(cfg.Sim.Faults, sim.FaultBatch429)
			}
			cfg.Batch.RetryAfter, cfg.Batch.MaxRequests = time.Millisecond, 25
			l, j := newLab(t, cfg), &journal{left: -1}
			d := l.dispatcher(t, name, with(j), func(c *dispatch.Config) { c.Lanes[0].Provider.Batch.Requests, c.Retry.Attempts = 25, 30 })
			for range 2 {
				reqs := questions(80)
				answers(t, l, name, reqs, wave(t, t.Context(), d, reqs))
			}
			if p := d.Batches(); len(j.open()) != 0 || len(p.Open) != 0 || p.Queued != 0 || p.Wave != 2 {
				t.Errorf("left open: %s, %+v", j.steps(), p)
			}
		})
	}
}
