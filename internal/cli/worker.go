package cli

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"parley/internal/ask/dispatch"
	"parley/internal/ask/dispatch/budget"
	"parley/internal/cli/app"
	"parley/internal/cli/exit"
	"parley/internal/run/cluster"
	"parley/internal/run/cluster/hub"
	"parley/internal/run/cluster/lease"
	"parley/internal/run/engine"
	"parley/internal/run/planfile"
	"parley/internal/serve/telemetry"
	"parley/journal"
	"parley/llm"
)

// workerCmd plays episodes for runs on other machines.
type workerCmd struct {
	Cluster     string `required:"" placeholder:"URL" help:"The hub, such as tls://host:4222, or nats://127.0.0.1:4222 on this machine."`
	Concurrency *int   `placeholder:"N" help:"${limits_concurrency} Default: the plan's."`
	Quiet       bool   `help:"Print only errors."`
	Attached    bool   `hidden:"" help:"End when standard input ends."`
	hubFlags
	metricsFlags
	trustFlags
	reachFlags
}

// Run plays until the first signal. It then gives its episodes back. The second signal ends it at once.
func (c *workerCmd) Run(ctx context.Context, s *State) error {
	if n := c.Concurrency; n != nil && (*n < 1 || *n > planfile.MaxConcurrency) {
		return exit.Usagef("--concurrency %d: want 1 to %d", *n, planfile.MaxConcurrency)
	}
	token, err := c.token(s)
	if err != nil {
		return err
	}
	gate, err := c.gate(s)
	if err != nil {
		return err
	}
	ctx, g, end := gate.listen(ctx)
	defer end()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(context.Canceled)
	if c.Attached {
		go func() { // nothing can interrupt a Read
			_, _ = io.Copy(io.Discard, s.Stdin)
			cancel(errors.New("the process that started the worker has ended"))
		}()
	}
	drain, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(context.Canceled)
	g.OnClose(func() { stop(errors.New("stopped by a signal")) })

	watched, err := c.openMonitor(ctx, s)
	if err != nil {
		return err
	}
	defer watched.close(ctx, s)
	count := &workerCounts{began: time.Now(), plays: map[*player]int{}}
	watched.show(ctx, s, count.page)
	tell := s.tell
	if c.Attached {
		tell = nil // who started it tells
	}
	nc, err := c.connect(ctx, c.Cluster, token, 0, tell, nats.IgnoreAuthErrorAbort()) // a hub may come back with another token
	if err != nil {
		return err
	}
	defer nc.Close()
	level := slog.LevelInfo
	if c.Quiet {
		level = slog.LevelError
	}
	_, run := hub.Options(token)
	w := cluster.Worker{Conn: nc.Conn, Build: buildID(), Run: run, Log: slog.New(slog.NewTextHandler(s.err, &slog.HandlerOptions{Level: level}))}
	w.Open = func(_ context.Context, session string, begun *journal.Begun) (cluster.Opened, error) {
		return c.player(s, gate, count, nc.Conn, session, begun)
	}
	err = w.Serve(ctx, drain)
	if ctx.Err() != nil && c.Attached {
		return nil
	}
	return err
}

// player prepares to play a run. Several runs may be prepared at once, each with its own code.
func (c *workerCmd) player(all *State, gate *keyGate, count *workerCounts, nc *nats.Conn, session string, begun *journal.Begun) (o cluster.Opened, err error) {
	own := *all
	s := &own
	defer func() {
		if err != nil {
			s.closeCode()
		}
	}()
	reach := c.recorded()
	origin := codeOrigin{file: "the plan of run " + begun.Run, folders: append(slices.Clone(c.AllowFiles), "."), Named: planfile.PeekJSON(begun.Plan), reach: *reach}
	if err := s.openKind(origin); err != nil {
		return o, err
	}
	plan, err := planfile.FromJSON(begun.Plan, s.Kinds, nil)
	if err == nil {
		err = s.openParams(plan, origin)
	}
	if err != nil {
		return o, err
	}
	tell := s.onEvent(true)
	p := app.Play{Kinds: s.Kinds, Code: s.code(), Events: func(e app.Event) { tell(e.Ask) }}
	p.Answers, p.Trust = cluster.Answers{Conn: nc, Run: begun.Run}, gate.Gate
	if c.Concurrency != nil {
		p.Sets = append(p.Sets, "limits.concurrency="+strconv.Itoa(*c.Concurrency))
	}
	l, err := p.OpenLots(begun, session, func(whole llm.Money) *budget.Budget {
		o.Money = lease.NewMoneyMember(session, whole)
		return o.Money.Budget()
	})
	if err != nil {
		return o, err
	}
	play := &player{Lots: l, run: begun.Run, own: s, count: count}
	count.lots(play, 0)
	o.Player, o.Full, o.Limits, o.Calls, o.BeforeActs = play, l.Full, l.Limits(), l.Report, l.BeforeActs
	return o, nil
}

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
func (p *player) Play(ctx, drain context.Context, j journal.Journal, lot engine.Lot, needEpisodes func()) (engine.Result, error) {
	p.count.lots(p, 1)
	defer p.count.lots(p, -1)
	return p.Lots.Play(ctx, drain, j, lot, needEpisodes)
}

// Close releases everything.
func (p *player) Close(ctx context.Context) error {
	defer p.own.closeCode()
	p.count.closed(p)
	return p.Lots.Close(ctx)
}
