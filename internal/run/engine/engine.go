// Package engine plays runs: it takes episodes from a plan, plays their worlds, makes their calls,
// and makes every reply of a model, person or environment durable before a world sees it.
//
// A run is a pure fold over its journal, and a new run is the resume of an empty journal. Episodes
// that ended are not played again. An episode that did not end is played from its start with the
// recorded replies, which costs no call. Worlds whose kind implements part.Restarter begin again instead: what
// they use outside has lost its state.
//
// It promises the same outcomes at any concurrency, pace, and moment of being killed; that no
// recorded reply is asked for again; that the oldest episodes are served first, and no more are
// begun than keep the providers busy; that a panic in a world ends only its episode; and that Run
// returns only when every goroutine it started has ended.
//
// It does not talk to providers or keep files: it knows no store, dialect or particular world.
//
// run.go joins the parts. agenda.go asks the plan for episodes and counts outcomes, scheduler.go decides what
// happens next, episode.go plays strands, and calls.go makes their calls. replay.go reads back what was
// recorded, budget.go limits what an episode may cost, and fingerprint.go recognizes equal plays. steering.go
// changes a run while it is played, and remote.go plays it in other processes.
package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"parley/internal/ask/settings"
	"parley/journal"
	"parley/llm"
	"parley/world"
)

// Models makes asks. Package dispatch implements it.
type Models interface {
	// Each asks the requests of reqs, as many at once as the limits allow and only a little ahead
	// of them. It calls done from one goroutine at a time. A request at which it stops reading reqs
	// is not taken.
	Each(ctx context.Context, reqs iter.Seq[*llm.Request], done func(i int, r llm.Result)) int
	// Drain refuses calls that wait with llm.KindCanceled. Calls in flight continue.
	Drain()
}

// Batches asks whole waves, over batch APIs where providers have them.
type Batches interface {
	// Wave asks all of reqs together. It returns when it has called done for each, from one
	// goroutine at a time.
	Wave(ctx context.Context, reqs []*llm.Request, done func(i int, r llm.Result))
}

// Prices returns costs.
type Prices interface {
	// Worst returns the most that the first attempt at a request can cost.
	Worst(req *llm.Request) (llm.Money, error)
	// List returns what tokens cost without discounts.
	List(req *llm.Request, u llm.Usage) llm.Money
}

// Config describes a run.
type Config struct {
	// Settings has the pace, the limits of calls and episodes at once, and the budget of an episode. The rest of it is for others. While as many
	// acts are in flight as calls may be, and at least 16, no episode begins; without a limit, what Capacity allows or 256. Default: those of
	// the library.
	Settings *settings.Settings
	Journal  journal.Journal
	// Begun is written first, if the journal is empty.
	Begun journal.Begun
	Kind  world.Kind
	Plan  world.Stages
	// Models makes asks. Required unless every agent is a bot or a person.
	Models Models
	// People asks the agents that are people, and Programs those that are programs. Their questions count against no
	// limit of models. Required if there are such agents.
	People, Programs Answerer
	// Actor carries out acts. Default: none, and an act fails.
	Actor world.Actor
	// BeforeAct, if set, is called before each act and each question to a person, which wait for it, from several goroutines.
	BeforeAct func()
	// Remote plays all episodes in other processes. Default: this process plays them.
	Remote Remote
	// Lot plays only some episodes of a run. Plan must be the lot's. Default: all that Plan asks for.
	Lot *Lot
	// Unsaved, if set, is called with how many answers more, or less if it is negative, have arrived and are not durable yet. It must not block.
	Unsaved func(n int)
	// NeedEpisodes, if set, is called when more episodes could be played than Plan asks for. It must not block.
	NeedEpisodes func()
	// Batches asks the waves. Default: none, and Models makes each call.
	Batches Batches
	// Steer, if set, is given what changes the run while it is played, and writes to its journal, before play begins.
	Steer func(*Steering)
	// Released, if set, makes the requests of an attempt at an episode carry its name as their
	// Session. It is called when no more requests of that attempt will come, in this process or a
	// later one; whole reports whether the episode ended. It must not block.
	Released func(session string, whole bool)
	// Version, if set, returns the model to ask for a call of an episode to a model. Only the answer says which it was. It must not block.
	Version func(model string, of world.Spec) string
	// Prices are needed for a budget of each episode, which is at the list price: an episode that might exceed it always ends at the same call.
	Prices Prices
	// Capacity, if set, returns how many live episodes the Actor has room for at the moment; 0: any
	// number. It must not block.
	Capacity func() int
	// Unreachable, if set, reports whether a provider cannot be reached at the moment. Calls that wait for
	// it do not count against the limit for other providers. It must not block. Call Steering.Wake whenever it changes.
	Unreachable func(provider string) bool
	// Drain, when done, stops new calls and lets those in flight finish. Default: never.
	Drain context.Context //nolint:containedctx // a signal beside Run's ctx
	// Watch is called with what happens, from one goroutine at a time. It must not block.
	Watch func(Event)

	// arrival applies replies in the order of arrival: the mistake that the tests must catch.
	arrival bool
}

// Event is something that happened. One field is set.
type Event struct {
	Began   *Began           // an episode began, or goes on; not of episodes that other processes play
	Replied *journal.Replied // a call ended and is durable
	Ended   *journal.Ended   // an episode ended and is durable
	Staged  *journal.Staged  // a stage began
	Noted   *journal.Turned  // a world noted something; it may not be durable yet
	Steered *journal.Steered // somebody changed how the run is played, and that is durable
	Batched *journal.Batched // a batch has come further, and that is durable
	Wave    int              // how many calls the wave has that is sent now
	Closing int              // how many episodes are played to their end while no more begin
	Stops   *journal.Reason  // the run is not complete, and sends nothing more
	Idle    *Idle            // the Remote, or one of its workers, does not play
}

// Began is an attempt at an episode.
type Began struct{ Episode, Attempt int }

// Result is how a run ended, or how one process of it did.
type Result struct {
	State journal.State
	// Reason is why the run is not complete.
	Reason journal.Reason
	// Cause is the call whose failure stopped the run. It is not recorded, and is made again when
	// the run is resumed. Nil: there was another reason.
	Cause *journal.Replied
	// Episodes is how many the plan has asked for so far, Ended how many of them ended, Failed how
	// many ended as failures.
	Episodes, Ended, Failed int
	// Digest is of all outcomes in episode order.
	Digest string
	// Made is what this process recorded of the calls and acts that it, or a program that it asked, made, and of what programs answered. It
	// leaves out bots, which are asked nothing outside; with workers they are among it.
	Made journal.Spending
	// Replayed is how many replies it read back instead, to any call. Copied is how many of these, of models and people, it recorded
	// again for another attempt at an episode that had failed.
	Replayed, Copied int
	// Repeated is how many calls of programs were answered by recorded ones.
	Repeated int
	// Lost is how many calls had no recorded reply when the previous process, or a worker, was killed.
	Lost int
	Wall time.Duration
}

// ErrDiverged means that a world asks something else than it did when it was recorded: its rules,
// parameters or prompts have changed since, or it depends on more than its replies.
var ErrDiverged = errors.New("diverged")

// SameKind returns an ErrDiverged unless kind is the one that the run was recorded with, in the
// same version.
func SameKind(b *journal.Begun, kind world.Kind) error {
	switch all := kind.All(); {
	case b.Kind != kind.Name || b.KindVersion != kind.Version:
	case len(all) == 1 || b.Nested == all[1].Name && b.NestedVersion == all[1].Version:
		return nil
	default:
		return fmt.Errorf("%w: the run was recorded with %s version %d, which it plays, and this is %s version %d: %s", ErrDiverged, b.Nested, b.NestedVersion, all[1].Name, all[1].Version, ifDiverged)
	}
	return fmt.Errorf("%w: the run was recorded with %s version %d, and this is %s version %d: %s", ErrDiverged, b.Kind, b.KindVersion, kind.Name, kind.Version, ifDiverged)
}

// ifDiverged is advice about a run that has diverged.
const ifDiverged = "resume it with the version that recorded it, or begin a new run file"

// divergedError is an ErrDiverged with its location.
type divergedError struct {
	Turn journal.Turn
	What string
	// Language is that of the world, if it is not part of the program: python 3.11.7.
	Language string
}

// Error returns the location and what to do.
func (e *divergedError) Error() string {
	find := ""
	if strings.HasPrefix(e.Language, "python") {
		find = " (parley.testing.exercise finds such code)"
	}
	return fmt.Sprintf("diverged at episode %d, strand %q, turn %d: %s. The world has changed, or it depends on more than its replies, such as the clock, chance of its own, or files%s: %s",
		e.Turn.Episode, e.Turn.Strand, e.Turn.Turn, e.What, find, ifDiverged)
}

// Is makes it an ErrDiverged.
func (e *divergedError) Is(target error) bool { return target == ErrDiverged }

// Run plays c to its end, or until it has to stop. An error means that the run cannot continue
// unchanged; the result then says how far it came.
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
