package cli

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"parley/internal/ask/dispatch"
	"parley/internal/cli/app"
	"parley/internal/run/cluster/hub"
	"parley/internal/run/engine"
	"parley/internal/serve/telemetry"
	"parley/journal"
)

// workerCounts counts what a worker plays, of all its runs. It may be used from several goroutines.
type workerCounts struct {
	began time.Time

	mu    sync.Mutex
	plays map[*player]int   // lots, by run that is open
	ended dispatch.Snapshot // the calls of runs that were closed
}

// lots adds to the lots that a player plays, from its first to closed.
func (c *workerCounts) lots(p *player, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.plays[p] += n
}

// closed notes that a run is not played any more.
func (c *workerCounts) closed(p *player) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.plays, p)
	stats := p.Stats()
	stats.InFlight, stats.Waiting = 0, 0
	c.ended = c.ended.Plus(stats)
}

// page returns the page for Prometheus.
func (c *workerCounts) page() *telemetry.Page {
	c.mu.Lock()
	stats, lots := c.ended, map[string]int{}
	for p, n := range c.plays {
		stats = stats.Plus(p.Stats())
		lots[p.run] += n
	}
	c.mu.Unlock()
	p := &telemetry.Page{}
	telemetry.AddStats(p, stats)
	p.Add(telemetry.Gauge, telemetry.Prefix+"worker_runs", "Runs that the worker has joined.", float64(len(lots)))
	for _, run := range slices.Sorted(maps.Keys(lots)) {
		p.Add(telemetry.Gauge, telemetry.Prefix+"worker_lots", "Lots that the worker plays.", float64(lots[run]), "run", run)
	}
	p.AddProcess(c.began)
	return p
}

// player is a run that the worker plays, and the code of its kind.
type player struct {
	*app.Lots
	run   string
	own   *State
	count *workerCounts
}

// Play plays a lot.
func (p *player) Play(ctx, drain context.Context, j journal.Journal, lot engine.Lot, hungry func()) (engine.Result, error) {
	p.count.lots(p, 1)
	defer p.count.lots(p, -1)
	return p.Lots.Play(ctx, drain, j, lot, hungry)
}

// Close releases everything.
func (p *player) Close(ctx context.Context) error {
	defer p.own.closeCode()
	p.count.closed(p)
	return p.Lots.Close(ctx)
}

// hubPage returns the page of a hub for Prometheus.
func hubPage(h *hub.Hub, began time.Time) *telemetry.Page {
	p := &telemetry.Page{}
	if s, err := h.Stats(); err == nil { // it is not closing
		gauge := func(name, help string, v float64, labels ...string) {
			p.Add(telemetry.Gauge, telemetry.Prefix+"hub_"+name, help, v, labels...)
		}
		gauge("clients", "Runs, workers and others that are connected to this node.", float64(s.Clients))
		gauge("streams", "Streams of this node: two for each run.", float64(s.Streams))
		gauge("messages", "Messages of this node.", float64(s.Messages))
		const size, limit = "Bytes of messages of this node.", "How many bytes of messages this node may have."
		gauge("bytes", size, s.Memory, "in", "memory")
		gauge("bytes", size, s.Disk, "in", "disk")
		gauge("max_bytes", limit, s.MaxMemory, "in", "memory")
		gauge("max_bytes", limit, s.MaxDisk, "in", "disk")
	}
	p.AddProcess(began)
	return p
}
