// Package engine plays runs: it takes episodes from a plan, plays their worlds, makes
// the calls they ask for, and makes every reply durable before a world sees it.
//
// A run is a pure fold over its journal. A fresh run is the resume of an empty journal:
// there is one path. Episodes that ended are not played again; an episode in the middle
// is played from its start with the replies that were recorded, which costs no call.
//
// What it promises: the same outcomes at any concurrency, pace, and moment of being
// killed; no recorded reply is asked for again; oldest episodes are served first, and no
// more are begun than keep the providers busy; a panic in a world ends its episode and
// nothing else; Run returns only when every goroutine it started has ended.
//
// It is not for speaking to providers, or for keeping files: it knows neither store nor
// dialect nor any particular world.
package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"parley/journal"
	"parley/llm"
	"parley/world"
)

// Models makes asks. It is what the engine needs of package dispatch.
type Models interface {
	// Each asks what comes from reqs, as many at once as the limits allow and only a little
	// ahead of them; done is called from one goroutine at a time. A request at which it ends
	// reqs was not taken.
	Each(ctx context.Context, reqs iter.Seq[*llm.Request], done func(i int, r llm.Result)) int
	// Drain refuses what waits with llm.KindCanceled; what is in flight goes on.
	Drain()
}

// Batches asks whole waves, over batch APIs as far as there are any.
type Batches interface {
	// Wave asks all of reqs together and returns when done was called for each, from one
	// goroutine at a time.
	Wave(ctx context.Context, reqs []*llm.Request, done func(i int, r llm.Result))
}

// Prices say what is to be paid.
type Prices interface {
	// Worst is the most that a first try at a request can cost.
	Worst(req *llm.Request) (llm.Money, error)
	// List is what tokens of its answer cost without any discount.
	List(req *llm.Request, u llm.Usage) llm.Money
}

// Config is what a run is made of.
type Config struct {
	Journal journal.Journal
	// Begun is written first, if the journal is empty.
	Begun journal.Begun
	Kind  world.Kind
	Plan  world.Plan
	// Models makes asks. Required unless every agent is a bot.
	Models Models
	// Actor carries out acts. Default: none, and an act fails.
	Actor world.Actor
	// Wave plays in waves: calls are made only when every live strand waits for one, all of
	// them together. Default: false, an episode goes on as soon as its own turn is answered.
	Wave bool
	// Batches asks the waves. Default: none, and Models is asked for each call by itself.
	Batches Batches
	// Ledger, where it is set, is given a way into the journal before play begins: an entry is
	// durable when keep returns, and after everything that was handed over before it.
	Ledger func(keep func(e journal.Entry) error)
	// Released, where it is set, makes the requests of an attempt at an episode carry its name
	// as their Session, and is told when no more will come of that, in this sitting or in a
	// later one; whole is whether the episode came to its end. It must not block.
	Released func(session string, whole bool)
	// EpisodeBudget is the most that an attempt at an episode may cost by the list of Prices:
	// one that might cost more ends as failed, always at the same call. Default: no limit.
	EpisodeBudget llm.Money
	Prices        Prices
	// Live is the most episodes begun and not ended. Default: 20,000.
	Live int
	// Calls is the most asks in flight, and how many acts may be before no more episodes are
	// begun, which is 16 at least. Default: what the providers bear, and 256 acts.
	Calls int
	// Away, where it is set, says whether a provider cannot be reached at the moment: the calls
	// that wait for it leave room for those of others in Calls. It must not block, and Wakes is
	// given what to call whenever its answer changes.
	Away  func(provider string) bool
	Wakes func(changed func())
	// Drain, when done, begins no more and finishes what is in flight. Default: never.
	Drain context.Context //nolint:containedctx // a signal of its own, beside Run's ctx
	// Watch is told what happens, from one goroutine at a time; it must not block.
	Watch func(Event)

	// arrival applies replies in the order they arrive. It is the mistake that the tests
	// must catch.
	arrival bool
}

// Event is something that happened, for whoever watches.
type Event struct {
	Replied *journal.Replied // a call ended and is durable
	Ended   *journal.Ended   // an episode ended and is durable
	Staged  *journal.Staged  // a stage began
	Closing int              // so many episodes are played to their end, and no more are begun
}

// Result is how a run, or a sitting of it, ended.
type Result struct {
	State journal.State
	// Reason is why the run is not complete.
	Reason journal.Reason
	// Cause is the call whose failure stopped the run. It is not recorded: it is asked again when the
	// run is resumed. Nil: something else did.
	Cause *journal.Replied
	// Episodes the plan asked for so far, and how many of them ended, and ended as failures.
	Episodes, Ended, Failed int
	// Digest is of all outcomes in episode order.
	Digest string
	// Calls made in this sitting, and replies read back instead.
	Asked, Replayed int
	// FailedCalls is how many of the calls made in this sitting are recorded as failures.
	FailedCalls int
	// Lost is how many calls were in flight when the sitting before was cut off.
	Lost int
	Wall time.Duration
}

// ErrDiverged means that a world asks something else than the journal says it did: its
// rules, its parameters or its prompts have changed since.
var ErrDiverged = errors.New("diverged")

// SameKind is an ErrDiverged unless kind is the one that a run was recorded with, in the same version.
func SameKind(b *journal.Begun, kind world.Kind) error {
	if b.Kind == kind.Name && b.KindVersion == kind.Version {
		return nil
	}
	return fmt.Errorf("engine: %w: the run was recorded with %s version %d, and this is %s version %d: %s", ErrDiverged, b.Kind, b.KindVersion, kind.Name, kind.Version, ifDiverged)
}

// ifDiverged is what to do about a run that has diverged.
const ifDiverged = "play it with the version that recorded it, or begin a new run file"

// DivergedError says where.
type DivergedError struct {
	Turn journal.Turn
	What string
}

// Error says where and what can be done.
func (e *DivergedError) Error() string {
	return fmt.Sprintf("engine: diverged at episode %d, strand %q, turn %d: %s: %s",
		e.Turn.Episode, e.Turn.Strand, e.Turn.Turn, e.What, ifDiverged)
}

// Is makes it an ErrDiverged.
func (e *DivergedError) Is(target error) bool { return target == ErrDiverged }

// Run plays c to its end, or until it has to stop. It blocks. An error means that the
// run cannot go on as it is: the result then says how far it came.
func Run(ctx context.Context, c Config) (Result, error) {
	start := time.Now()
	r, err := newRun(ctx, c)
	if err != nil {
		return Result{}, err
	}
	res, err := r.process(ctx)
	res.Wall = time.Since(start)
	return res, err
}
