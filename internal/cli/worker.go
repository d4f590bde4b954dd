package cli

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"parley/internal/ask/dispatch/budget"
	"parley/internal/cli/app"
	"parley/internal/cli/exit"
	"parley/internal/run/cluster"
	"parley/internal/run/cluster/allot"
	"parley/internal/run/cluster/hub"
	"parley/internal/run/planfile"
	"parley/journal"
	"parley/llm"
)

// workerCmd plays episodes for runs on other machines.
type workerCmd struct {
	Cluster     string `required:"" placeholder:"URL" help:"The hub, such as tls://host:4222, or nats://127.0.0.1:4222 on this machine."`
	Concurrency *int   `placeholder:"N" help:"Maximum number of calls in flight. Default: the plan's."`
	Quiet       bool   `help:"Print only errors."`
	Attached    bool   `hidden:"" help:"End when standard input ends."`
	Folder      string `hidden:"" help:"The folder that the paths of the plan are relative to. Default: the current one."`
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

	watched, err := c.watch(ctx, s)
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
		return c.player(s, gate, count, session, begun)
	}
	err = w.Serve(ctx, drain)
	if ctx.Err() != nil && c.Attached {
		return nil
	}
	return err
}

// player prepares to play a run. Several runs may be prepared at once, each with its own code.
func (c *workerCmd) player(all *State, gate *keyGate, count *workerCounts, session string, begun *journal.Begun) (o cluster.Opened, err error) {
	own := *all
	s := &own
	defer func() {
		if err != nil {
			s.closeCode()
		}
	}()
	reach := c.recorded()
	of := source{file: "the plan of run " + begun.Run, folders: append(slices.Clone(c.AllowFiles), "."), Named: planfile.JSON(begun.Plan), reach: *reach}
	if err := s.openKind(of); err != nil {
		return o, err
	}
	plan, err := planfile.FromJSON(begun.Plan, s.Kinds, nil)
	if err == nil {
		err = s.openParams(plan, of)
	}
	if err != nil {
		return o, err
	}
	p := app.Play{Kinds: s.Kinds, Folder: c.Folder, Code: s.code(), Reach: reach, Trust: gate.Gate, Notices: s.notice, Levels: s.levels(), Outages: s.outage}
	if c.Concurrency != nil {
		p.Sets = append(p.Sets, "limits.concurrency="+strconv.Itoa(*c.Concurrency))
	}
	l, err := p.OpenLots(begun, session, func(whole llm.Money) *budget.Budget {
		o.Money = allot.NewMember(session, whole)
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
