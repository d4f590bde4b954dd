// Package gateway serves the APIs of OpenAI, Anthropic and Gemini to other programs, sends their calls to providers
// through dispatch, and records every call in a run.
//
// It promises that an answer reaches its client as the provider sent it, byte for byte, unless it had to be
// translated; that the end of an answer is sent only after the call is recorded; that calls that wait for
// limits are served fairly between sessions, until their deadline; that a call is not retried once its client
// got a part of the answer; that a call ends with its client; and that no key is in a record, an error or an
// answer. Run returns only after everything it started has ended.
//
// It opens no files, reads no environment variables except the keys of providers, and does not show what it
// recorded.
//
// A request passes through the files in this order: server.go receives it, route.go finds out what it asks for,
// exchange.go answers it; upstream.go sends it to a provider and answer.go receives the answer. session.go
// keeps the sessions, about.go what clients say of them, batches.go the batches that they send, ledger.go and record.go the record, and replay.go serves the
// record again. programs.go serves the programs that play in a run, whose calls the run records itself.
package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"parley/internal/ask/cache"
	"parley/internal/ask/dispatch"
	"parley/internal/ask/dispatch/budget"
	"parley/internal/ask/price"
	"parley/internal/ask/provider"
	"parley/internal/ask/settings"
	"parley/internal/kit/auth"
	"parley/internal/run/planner"
	"parley/internal/serve/gateway/format"
	"parley/internal/serve/telemetry"
	"parley/journal"
	"parley/llm"
)

// Config configures a Gateway.
type Config struct {
	// Upstreams are the providers. The first of each family answers for models whose name does not say which.
	Upstreams []provider.Provider
	// ChatOnly names upstreams that get calls of OpenAI's responses as chat completions. Default: those that do not know responses.
	ChatOnly []string
	// Aliases maps other names of models to provider/model.
	Aliases map[string]string
	// Fallbacks lists models, as provider/model, that are asked in turn when one cannot answer.
	Fallbacks map[string][]string

	// MaxOutput is the most tokens that a call may ask for as the answer, and AliasOutput the same for the calls that name a model by an
	// alias. Of two limits, the lower counts. Default: 0, what the client asks for.
	MaxOutput   int
	AliasOutput map[string]int

	// Journal is where calls are recorded, or the record that is served.
	Journal journal.Journal
	// Begin describes the run.
	Begin Begin
	// Replay serves the record and asks nobody. Default: false.
	Replay bool
	// Resume serves the record of a session first, and then continues. Default: false.
	Resume bool
	// Rules say what to ignore when a call is compared with the record. Default: nothing.
	Rules *format.Rules
	// Nearest is the share of words that a recorded call must have in common with a call to be replayed for
	// it. Default: 0, only equal calls are replayed.
	Nearest float64
	// Settings has the budget, earlier processes included, and how calls are retried before their first byte. The rest of it is for others.
	// Default: those of the gateway.
	Settings *settings.Settings
	// Prices of models. Default: the embedded table.
	Prices *price.Table
	// Cache stores answers. Default: none.
	Cache *cache.Store

	// MaxSteps is how many answers of one model a session gets. Default: 0, no limit.
	MaxSteps int
	// Until says when no more sessions of an agent, under a condition and with tags, are wanted. Its Seat and Agent do not count. Default: never.
	Until *planner.Until
	// Idle closes a session after so long without a call. Default: 0, never.
	Idle time.Duration
	// Deadline bounds the time until an answer begins, with queueing and retries. Default: 10 minutes.
	Deadline time.Duration
	// Grace bounds the calls in flight when the gateway stops. Default: 30 seconds.
	Grace time.Duration
	// ClientTimeout bounds the time of a client to send a request or to read a piece of an answer. Default: 1
	// minute.
	ClientTimeout time.Duration

	// Keys are the keys of which clients must send one. Default: none, everybody is served.
	Keys []string
	// Access lists the names of the gateway and the web pages that may use it. Default: its address and the
	// loopback names, and no web page.
	Access auth.Access
	// MaxBody is the maximum size of a request in bytes. Default: 32 MiB.
	MaxBody int64
	// Events is called with what happens. It is called from several goroutines, and calls wait for it. Default: nobody is told.
	Events func(Event)
	// Telemetry gets spans and metrics of calls. Default: none.
	Telemetry *telemetry.Exporter
}

// Event is something that happened. One field of the two is set.
type Event struct {
	dispatch.Event
	// Text is a line for the person who runs the gateway: a call is not in the record, or differs from its replay. It has text of clients.
	Text string
}

func (c *Config) fill() {
	if c.Events == nil {
		c.Events = func(Event) {}
	}
	c.Deadline = cmp.Or(max(0, c.Deadline), 10*time.Minute)
	c.Grace = cmp.Or(max(0, c.Grace), 30*time.Second)
	c.ClientTimeout = cmp.Or(max(0, c.ClientTimeout), time.Minute)
	c.MaxBody = cmp.Or(max(0, c.MaxBody), 32<<20)
	if c.Settings == nil {
		c.Settings = settings.New(settings.Gateway)
	}
}

// Gateway serves calls while Run is running.
type Gateway struct {
	cfg         Config
	keys        auth.Keys
	upstreams   map[string]*relay
	relays      *Relays // of a run; nil: the upstreams are the providers
	order       []*relay
	dispatch    *dispatch.Dispatcher // nil with Replay
	ledger      *ledger              // nil with Replay
	sessions    *sessionSet
	clientKeys  bool // some provider gets the clients' own keys
	queue       fairQueue
	metrics     *metrics
	draining    atomic.Bool
	ends        [endKinds]atomic.Int64
	missed      atomic.Int64 // calls that were not in the record
	loose       atomic.Int64 // replayed calls that differ as the rules allow
	nearest     atomic.Int64 // calls answered by the nearest recorded one
	shortOf     sync.Map     // models whose calls have waited for room in the budget
	shortages   atomic.Int64 // how many
	misplacedAt sync.Map     // names of upstreams whose servers do not know our path
	calls       sync.WaitGroup
}

// Open checks c, opens its providers and its record. Run must follow.
func Open(ctx context.Context, c Config) (_ *Gateway, err error) {
	c.fill()
	g := &Gateway{cfg: c, keys: auth.HashKeys(c.Keys), upstreams: map[string]*relay{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, g.closeUpstreams())
		}
	}()
	if err := g.openUpstreams(); err != nil {
		return nil, err
	}
	g.clientKeys = g.passesKeys()
	state, err := g.openRecord(ctx)
	if err != nil {
		return nil, err
	}
	if c.Replay {
		c.Aliases = state.Aliases
	}
	g.sessions = newSessionSet(c, g.ledger, state)
	if !c.Replay {
		if err := g.openDispatch(state.Spent, state.AtRisk); err != nil {
			return nil, err
		}
		for _, b := range state.Batches {
			g.dispatch.Budget().AddRisk(b.aside)
		}
	}
	if g.sessions.rule, err = newStopRule(c.Until, state); err != nil {
		return nil, err
	}
	g.metrics = newMetrics(g)
	c.Telemetry.Measure(g.metrics.page)
	return g, nil
}

func (g *Gateway) openUpstreams() error {
	if g.cfg.Replay {
		return nil
	}
	if len(g.cfg.Upstreams) == 0 {
		return errors.New("gateway: no upstreams: name at least one")
	}
	g.cfg.Telemetry.Know(g.cfg.Upstreams)
	for _, p := range g.cfg.Upstreams {
		if p.Dialect == "sim" {
			return fmt.Errorf("gateway: upstream %s: the simulated provider is served by `parley sim`: name its address", p.Name)
		}
		if g.upstreams[p.Name] != nil {
			return fmt.Errorf("gateway: upstream %s is given twice", p.Name)
		}
		u, err := openRelay(p, nil)
		if err != nil {
			return fmt.Errorf("gateway: %w", err)
		}
		u.noResponses.Store(slices.Contains(g.cfg.ChatOnly, p.Name))
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

func (g *Gateway) openRecord(ctx context.Context) (state *ledgerContents, err error) {
	if g.cfg.Replay {
		return readLedger(ctx, g.cfg.Journal)
	}
	g.ledger, state, err = continueLedger(ctx, g.cfg.Journal, g.cfg.Begin)
	return state, err
}

func (g *Gateway) openDispatch(spent, atRisk llm.Money) error {
	spending := budget.New(g.cfg.Settings.Budget, spent)
	spending.Lost(atRisk)
	if g.cfg.Settings.Budget > 0 {
		spending.Expose = func(_ context.Context, worst llm.Money) error { return g.ledger.Expose(worst) }
	}
	lanes := make([]dispatch.Lane, len(g.order))
	for i, u := range g.order {
		lanes[i] = dispatch.Lane{Provider: u.provider, Model: u}
	}
	var err error
	g.dispatch, err = dispatch.New(dispatch.Config{
		Lanes: lanes, Prices: g.cfg.Prices, Budget: spending, Events: g.happened, Settings: g.cfg.Settings,
	})
	return err
}

// happened passes on what happens between calls and providers. That calls wait for room in the budget, and why, it tells once for each
// model: their clients see nothing of it.
func (g *Gateway) happened(e dispatch.Event) {
	if e.Short == nil {
		g.cfg.Events(Event{Event: e})
		return
	}
	if g.shortages.Load() >= maxShortages {
		return
	}
	if _, reported := g.shortOf.LoadOrStore(e.Short.Model, true); !reported {
		g.shortages.Add(1)
		g.tell("%s; --max-output-tokens lowers what a call sets aside", dispatch.Wait{Money: e.Short}.Text())
	}
}

// maxShortages bounds how many models are reported: clients choose their names.
const maxShortages = 100

// Summary counts what a gateway did.
type Summary struct {
	Recorded journal.Spending
	Replayed int // calls answered from the record
	Loose    int // of those, calls that differ as the rules allow
	Nearest  int // of those, calls answered by the most similar one
	Missed   int // calls that were not in the record
	Refused  int // calls that were not sent
	Sessions int
	Money    budget.Sums // earlier processes included
}

// Summary counts since Open.
func (g *Gateway) Summary() Summary {
	_, all := g.sessions.Counts()
	n := func(e callEnd) int { return int(g.ends[e].Load()) }
	sum := Summary{
		Replayed: n(endReplayed), Refused: n(endRefused), Sessions: all,
		Loose: int(g.loose.Load()), Nearest: int(g.nearest.Load()), Missed: int(g.missed.Load()),
	}
	if g.ledger != nil {
		sum.Recorded = g.ledger.Kept()
	}
	if g.dispatch != nil {
		sum.Money = g.dispatch.Budget().Sums()
	}
	return sum
}

// Run serves on ln. Once drain is done it begins nothing new, and calls in flight get at most Config.Grace;
// once ctx is done they end at once. It closes ln and everything that was opened, and returns nil after such
// an end.
func (g *Gateway) Run(ctx, drain context.Context, ln net.Listener) error {
	base, abort := context.WithCancelCause(context.WithoutCancel(ctx))
	defer abort(context.Canceled)
	srv := g.server(base, http.HandlerFunc(g.handle))
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
	wg.Go(func() { served <- srv.Serve(ln) })

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
		g.ledger.Close(time.Now())
	}
	wg.Wait()
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	return errors.Join(err, recorded, g.closeUpstreams())
}

// stop ends the server: within Config.Grace, then at once.
func (g *Gateway) stop(ctx context.Context, srv *http.Server, abort context.CancelCauseFunc) {
	g.draining.Store(true)
	if g.dispatch != nil {
		g.dispatch.Drain()
	}
	grace, cancel := context.WithTimeout(ctx, g.cfg.Grace)
	defer cancel()
	if srv.Shutdown(grace) != nil {
		abort(errStopping)
		_ = srv.Close() // ends the rest
	}
	g.calls.Wait() // Close does not
}

var errStopping = errors.New("the gateway stops")
