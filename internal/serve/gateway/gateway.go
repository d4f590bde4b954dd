// Package gateway serves the APIs of OpenAI and Anthropic to programs that nobody here
// wrote, hands their calls on to providers through dispatch, and keeps a record of every
// one of them in a run.
//
// What it promises: an answer reaches its client as the provider gave it, to the byte,
// unless it had to be translated; its end reaches the client only after the call is
// recorded, so that it outlives the process; a call that waits for limits waits in a queue that is fair between sessions,
// until its deadline; once a client has been sent anything its call is not tried again; a
// client that goes away takes its call with it; no key is in a record, an error or an
// answer. Run returns only after everything it started has ended.
//
// What it is not for: it opens no files and reads no environment but that of package
// relay's keys; it does not show what it recorded.
package gateway

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"parley/internal/cachestore"
	"parley/internal/dispatch"
	"parley/internal/dispatch/budget"
	"parley/internal/dispatch/outage"
	"parley/internal/price"
	"parley/internal/provider"
	"parley/internal/serve/auth"
	"parley/internal/serve/gateway/ledger"
	"parley/internal/serve/gateway/line"
	"parley/internal/serve/gateway/match"
	"parley/internal/serve/gateway/relay"
	"parley/internal/serve/gateway/session"
	"parley/internal/serve/gateway/trace"
	"parley/journal"
	"parley/llm"
)

// Config is how a gateway is set up.
type Config struct {
	// Upstreams are the providers, the first of each family being the one that is asked when
	// a model's name does not say which.
	Upstreams []provider.Provider
	// Aliases are other names of models, as provider/model.
	Aliases map[string]string
	// Fallbacks are models asked in turn when one, as provider/model, cannot answer.
	Fallbacks map[string][]string

	// Journal is where calls are recorded, or what is served again.
	Journal journal.Journal
	// Begin says how the run is set up.
	Begin ledger.Begin
	// Replay serves what is recorded, and asks nobody. Default: false.
	Replay bool
	// Resume serves what a session has recorded first, and then goes on. Default: false.
	Resume bool
	// Rules are what to ignore when a call is compared with the record. Default: nothing.
	Rules *match.Rules
	// Nearest is which share of words a recorded call must have in common with one that is not
	// recorded to be replayed for it. Default: 0, only what asks the same is replayed.
	Nearest float64
	// Tell is told, in one line, what whoever runs the gateway should know: a session that
	// begins anew, a call that is not in the record, one that differs from what is replayed for
	// it. The text has words of clients. Default: nobody is told.
	Tell func(text string)

	// Budget is what may be spent in all, earlier sittings included. Default: no limit.
	Budget llm.Money
	// Prices of models. Default: the embedded table.
	Prices *price.Table
	// Cache keeps answers. Default: none.
	Cache *cachestore.Store
	// Retries is how often a failed call is tried again before its first byte. Default: 4;
	// NoRetries: never.
	Retries int

	// MaxSteps is how many answers of one model a session gets. Default: 0, any number.
	MaxSteps int
	// Idle is after how long without a call a session is closed. Default: 0, never.
	Idle time.Duration
	// Deadline bounds the time until an answer begins, queueing and retries included.
	// Default: 10 minutes.
	Deadline time.Duration
	// Grace is how long calls in flight may take when the gateway stops. Default: 30 seconds.
	Grace time.Duration
	// Patience is how long a client may take to send a request, or to read a piece of an
	// answer. Default: 1 minute.
	Patience time.Duration

	// Keys are those that clients must send one of. Default: none, everybody is served.
	Keys []string
	// Access is by which names the gateway may be used, and from which web pages. Default: by
	// its address and the names of loopback, from none.
	Access auth.Access
	// MaxBody is the largest request in bytes. Default: 32 MiB.
	MaxBody int64
	// Unreachable is how long a provider that cannot be reached is waited for. Default: 1 minute;
	// negative: not at all.
	Unreachable time.Duration
	// Outages is told when a provider cannot be reached, and when it is back: see dispatch.Config.
	Outages func(outage.Outage)
	// Notices is told what somebody who pays should know of a model: see dispatch.Config.
	Notices func(dispatch.Notice)
	// Tracer makes a span of every call. Default: none.
	Tracer *trace.Tracer
}

func (c *Config) fill() {
	orDefault(&c.Deadline, 10*time.Minute)
	orDefault(&c.Grace, 30*time.Second)
	orDefault(&c.Patience, time.Minute)
	orDefault(&c.MaxBody, 32<<20)
	if c.Unreachable == 0 {
		c.Unreachable = DefaultUnreachable
	}
	switch c.Retries {
	case 0:
		c.Retries = 4
	case NoRetries:
		c.Retries = 0
	}
}

// DefaultUnreachable is how long a provider that cannot be reached is waited for: not so long
// that clients give up.
const DefaultUnreachable = time.Minute

// NoRetries is for a Config that tries nothing again.
const NoRetries = -1

func orDefault[T int | int64 | time.Duration](v *T, otherwise T) {
	if *v <= 0 {
		*v = otherwise
	}
}

// Gateway serves while Run is running.
type Gateway struct {
	cfg       Config
	keys      auth.Keys
	upstreams map[string]*relay.Upstream
	order     []*relay.Upstream
	dispatch  *dispatch.Dispatcher // nil: nobody is asked
	ledger    *ledger.Ledger       // nil: nothing is recorded
	sessions  *session.Sessions
	passes    bool // some provider is asked with the clients' own keys
	queue     fair
	metrics   *metrics
	draining  atomic.Bool
	became    [endKinds]atomic.Int64
	missed    atomic.Int64 // calls that are not in the record
	loose     atomic.Int64 // calls that differ from what was replayed for them as the rules allow
	nearest   atomic.Int64 // calls for which the nearest was replayed
	lost      sync.Map     // names of upstreams that do not know the address they are asked at
	calls     sync.WaitGroup
	lines     line.Lines
}

// Open checks c, opens its providers and goes on with its record. Run must follow.
func Open(ctx context.Context, c Config) (*Gateway, error) {
	c.fill()
	g := &Gateway{cfg: c, keys: auth.New(c.Keys), upstreams: map[string]*relay.Upstream{}}
	if err := g.openUpstreams(); err != nil {
		return nil, err
	}
	g.passes = g.passesKeys()
	state, err := g.openRecord(ctx)
	if err != nil {
		return nil, errors.Join(err, g.closeUpstreams())
	}
	g.sessions = session.New(session.Config{
		Journal: c.Journal, MaxSteps: c.MaxSteps, Idle: c.Idle, Draws: c.Cache != nil, Replay: c.Replay, Resume: c.Resume,
		Anybody: c.Replay && len(c.Keys) == 0, Rules: c.Rules, Nearest: c.Nearest, Aliases: aliases(c, state), Tell: c.Tell,
	}, g.ledger, state)
	if !c.Replay {
		if err := g.openDispatch(state.Spent); err != nil {
			return nil, errors.Join(err, g.closeUpstreams())
		}
	}
	g.metrics = newMetrics(g)
	return g, nil
}

func (g *Gateway) openUpstreams() error {
	if g.cfg.Replay {
		return nil
	}
	if len(g.cfg.Upstreams) == 0 {
		return errors.New("gateway: no upstreams: there is nobody to ask")
	}
	for _, p := range g.cfg.Upstreams {
		if p.Dialect == "sim" {
			return errors.Join(fmt.Errorf("gateway: upstream %s: the simulated provider is served by `parley sim`: name its address", p.Name), g.closeUpstreams())
		}
		if g.upstreams[p.Name] != nil {
			return errors.Join(fmt.Errorf("gateway: upstream %s is given twice", p.Name), g.closeUpstreams())
		}
		u, err := relay.Open(p)
		if err != nil {
			return errors.Join(fmt.Errorf("gateway: %w", err), g.closeUpstreams())
		}
		g.upstreams[p.Name] = u
		g.order = append(g.order, u)
	}
	return g.checkNames()
}

func (g *Gateway) closeUpstreams() error {
	var errs []error
	for _, u := range g.order {
		errs = append(errs, u.Close())
	}
	return errors.Join(errs...)
}

func (g *Gateway) openRecord(ctx context.Context) (state *ledger.State, err error) {
	if g.cfg.Replay {
		return ledger.Read(ctx, g.cfg.Journal)
	}
	g.ledger, state, err = ledger.Open(ctx, g.cfg.Journal, g.cfg.Begin)
	return state, err
}

func (g *Gateway) openDispatch(spent llm.Money) error {
	spending := budget.New(g.cfg.Budget, spent)
	if g.cfg.Budget > 0 {
		spending.Expose = g.ledger.Expose
	}
	lanes := make([]dispatch.Lane, len(g.order))
	for i, u := range g.order {
		lanes[i] = dispatch.Lane{Provider: u.Provider(), Model: u}
	}
	var err error
	g.dispatch, err = dispatch.New(dispatch.Config{
		Lanes: lanes, Prices: g.cfg.Prices, Budget: spending, Notices: g.cfg.Notices, Outages: g.cfg.Outages,
		// Deadlines are ours: a stream that has begun may take as long as it takes.
		Retry: dispatch.Retry{Attempts: g.cfg.Retries + 1, Deadline: -1, Unreachable: g.cfg.Unreachable},
	})
	return err
}

// Summary is what a gateway came to.
type Summary struct {
	Recorded int // calls
	Failed   int // of them
	Replayed int // calls that were answered from the record
	Loose    int // of them, those that differ as the rules allow
	Nearest  int // of them, those for which the most similar one was replayed
	Missed   int // calls that were looked for in the record and not found
	Refused  int // calls that were not made
	Sessions int
	Spent    llm.Money // earlier sittings included
}

// Summary counts what was served since Open.
func (g *Gateway) Summary() Summary {
	_, all := g.sessions.Counts()
	n := func(e end) int { return int(g.became[e].Load()) }
	sum := Summary{
		Recorded: n(endRecorded) + n(endFailed), Failed: n(endFailed), Replayed: n(endReplayed), Refused: n(endRefused), Sessions: all,
		Loose: int(g.loose.Load()), Nearest: int(g.nearest.Load()), Missed: int(g.missed.Load()),
	}
	if g.dispatch != nil {
		sum.Spent, _ = g.dispatch.Budget().Spent()
	}
	return sum
}

// Run serves on ln. Once drain is done nothing new is begun, and calls in flight may finish
// for at most Config.Grace; once ctx is done they are ended at once. It closes ln and all
// that was opened, and returns nil after such an end.
func (g *Gateway) Run(ctx, drain context.Context, ln net.Listener) error {
	base, abort := context.WithCancelCause(context.WithoutCancel(ctx))
	defer abort(context.Canceled)
	srv := g.httpServer(base)
	var wg sync.WaitGroup
	var recorded error
	failed := make(<-chan struct{})
	if g.ledger != nil {
		failed = g.ledger.Failed()
		wg.Go(func() { recorded = g.ledger.Run(context.WithoutCancel(ctx)) })
	}
	sweep, stopSweep := context.WithCancel(context.WithoutCancel(ctx))
	wg.Go(func() { g.sessions.Sweep(sweep) })
	served := make(chan error, 1)
	wg.Go(func() { served <- srv.Serve(line.Listen(ln)) })

	var err error
	select {
	case err = <-served:
	case <-drain.Done():
	case <-ctx.Done():
	case <-failed:
	}
	g.stop(ctx, srv, abort)
	stopSweep()
	if g.ledger != nil {
		g.ledger.Close("", time.Now())
	}
	wg.Wait()
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	return errors.Join(err, recorded, g.closeUpstreams())
}

// stop ends the server: gently for as long as may be, then at once.
func (g *Gateway) stop(ctx context.Context, srv *http.Server, abort context.CancelCauseFunc) {
	g.draining.Store(true)
	if g.dispatch != nil {
		g.dispatch.Drain()
	}
	grace, cancel := context.WithTimeout(ctx, g.cfg.Grace)
	defer cancel()
	g.lines.Close(false)
	err := srv.Shutdown(grace)
	ended := make(chan struct{})
	go func() { // Shutdown knows nothing of lines
		defer close(ended)
		g.calls.Wait()
	}()
	select {
	case <-ended:
	case <-grace.Done():
	}
	abort(errStopping)
	if err != nil || grace.Err() != nil {
		_ = srv.Close() // what does not end by itself is ended
		g.lines.Close(true)
	}
	<-ended
	g.calls.Wait() // whatever slipped in since
}

var errStopping = errors.New("the gateway stops")
